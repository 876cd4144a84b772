//! Signs that the model did not read what it was sent.

use super::signal::Finding;

/// Per cent of the estimated prompt tokens that a provider reports at least when all of it was read.
const READ: u64 = 60;
/// Estimates below so many tokens are too rough to be compared.
const ENOUGH: u64 = 512;

/// Judges the prompt tokens that a provider reports, cached ones included, by an estimate that was calibrated on
/// its own past reports.
pub(super) fn unread(reported: u64, estimated: u64) -> Option<Finding> {
    let unread = estimated >= ENOUGH
        && u128::from(reported) * 100 < u128::from(estimated) * u128::from(READ);
    unread.then_some(Finding::Unread { reported, estimated })
}

/// Whether an answer that begins with `opening`, normalised, says that something sent is not there.
pub(super) fn misses_attachment(opening: &str) -> bool {
    WORDS.iter().any(|(things, missing)| {
        things.iter().any(|thing| opening.contains(thing))
            && missing.iter().any(|phrase| opening.contains(phrase))
    })
}

/// By language: what may have been sent, and how a model says that it is not there.
const WORDS: [(&[&str], &[&str]); 9] = [
    (
        &[
            "document",
            "attachment",
            "file",
            "image",
            "picture",
            "pdf",
            "text",
            "spreadsheet",
            "photo",
        ],
        &[
            "was provided",
            "were provided",
            "has been provided",
            "wasn't provided",
            "not been provided",
            "not attached",
            "wasn't attached",
            "no attachment",
            "don't see any",
            "do not see any",
            "don't see an",
            "do not see an",
            "can't see any",
            "cannot see any",
            "can't see the",
            "cannot see the",
            "didn't attach",
            "did not attach",
            "you haven't provided",
            "you have not provided",
            "you didn't provide",
            "did not provide",
            "haven't attached",
            "please provide the",
            "please upload",
            "please attach",
            "seems to be missing",
            "appears to be missing",
            "haven't shared",
            "unable to view",
            "no file",
        ],
    ),
    (
        &["dokument", "anhang", "datei", "bild", "text"],
        &[
            "nicht angehängt",
            "kein dokument",
            "keine datei",
            "kein anhang",
            "keinen anhang",
            "kein bild",
            "nicht beigefügt",
            "nicht bereitgestellt",
            "wurde kein",
            "wurde keine",
            "bitte laden sie",
            "bitte lade",
            "nicht sehen",
        ],
    ),
    (
        &["document", "fichier", "pièce jointe", "image", "texte"],
        &[
            "aucun document",
            "aucun fichier",
            "aucune pièce",
            "aucune image",
            "n'a été fourni",
            "pas été fourni",
            "pas joint",
            "ne vois pas",
            "veuillez fournir",
            "veuillez joindre",
            "n'avez pas fourni",
        ],
    ),
    (
        &["documento", "archivo", "adjunto", "imagen", "texto"],
        &[
            "ningún documento",
            "ningún archivo",
            "ninguna imagen",
            "no se ha proporcionado",
            "no se proporcionó",
            "no has adjuntado",
            "no ha adjuntado",
            "no veo",
            "no has proporcionado",
            "por favor, adjunta",
            "por favor, proporciona",
        ],
    ),
    (
        &["documento", "file", "allegato", "immagine", "testo"],
        &[
            "nessun documento",
            "nessun file",
            "nessun allegato",
            "nessuna immagine",
            "non è stato fornito",
            "non hai allegato",
            "non ha allegato",
            "non vedo",
            "non hai fornito",
        ],
    ),
    (
        &["documento", "arquivo", "ficheiro", "anexo", "imagem", "texto"],
        &[
            "nenhum documento",
            "nenhum arquivo",
            "nenhum ficheiro",
            "nenhum anexo",
            "nenhuma imagem",
            "não foi fornecido",
            "não vejo",
            "não anexou",
            "não forneceu",
        ],
    ),
    (
        &["文档", "文件", "附件", "图片", "图像"],
        &[
            "没有提供",
            "未提供",
            "没有看到",
            "没有上传",
            "未上传",
            "没有附",
            "看不到",
            "请提供",
            "请上传",
        ],
    ),
    (
        &["文書", "ドキュメント", "ファイル", "添付", "画像"],
        &[
            "提供されていません",
            "添付されていません",
            "見当たりません",
            "確認できません",
            "見えません",
            "添付してください",
        ],
    ),
    (
        &["документ", "файл", "вложени", "изображени"],
        &[
            "не предоставлен",
            "не приложен",
            "не вижу",
            "не прикреп",
            "не был загружен",
            "пожалуйста, загрузите",
        ],
    ),
];
