// Prints how fast npm's jsonrepair mends each text of a folder: name, peer, MB/s; the best of five.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { jsonrepair } from "jsonrepair";

const folder = process.argv[2];
for (const name of readdirSync(folder).sort()) {
  const text = readFileSync(join(folder, name), "utf8");
  let best = Infinity;
  let failed = false;
  for (let round = 0; round < 5; round += 1) {
    const start = process.hrtime.bigint();
    try {
      jsonrepair(text);
    } catch {
      failed = true;
    }
    best = Math.min(best, Number(process.hrtime.bigint() - start) / 1e9);
  }
  const rate = failed ? "refused" : Buffer.byteLength(text) / best / 1e6;
  console.log([name, "jsonrepair", rate].join("\t"));
}
