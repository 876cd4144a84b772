"""What /proc says of a process: resident memory, open files, and its sockets by the other end."""

import os


def resident(pid: int) -> int:
    """KiB."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


class Sockets:
    """TCP sockets that a process holds: towards its callers, towards providers, and half closed ones."""

    def __init__(self, pid: int, port: int):
        own = set()
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                own.add(os.readlink(f"/proc/{pid}/fd/{name}"))
            except FileNotFoundError:
                continue
        self.callers = self.providers = self.half_closed = 0
        with open(f"/proc/{pid}/net/tcp") as table:
            for row in list(table)[1:]:
                fields = row.split()
                state, inode = fields[3], fields[9]
                if f"socket:[{inode}]" not in own or state == "0A":  # 0A listens
                    continue
                self.half_closed += state == "08"  # CLOSE_WAIT: the other end has gone
                if int(fields[1].split(":")[1], 16) == port:
                    self.callers += 1
                else:
                    self.providers += 1


def slope(points: list) -> float:
    """Of the line through (x, y) with the least squares; 0 for fewer than two x."""
    count = len(points)
    if count < 2:
        return 0.0
    x0, y0 = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - x0) ** 2 for x, _ in points)
    return sum((x - x0) * (y - y0) for x, y in points) / spread if spread else 0.0
