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

/// What may have been sent, in every language.
pub(super) fn things() -> impl Iterator<Item = &'static str> + Clone {
    WORDS.iter().flat_map(|(things, _)| things.iter().copied())
}

/// Whether an answer with such an `opening`, normalised, which names one of the [`things`], says that it is not there.
pub(super) fn misses(opening: &str) -> bool {
    WORDS.iter().any(|(things, missing)| {
        things.iter().any(|thing| opening.contains(thing))
            && (missing.iter().any(|phrase| opening.contains(phrase)) || gives_none(opening))
    })
}

/// Whether it says in English that nothing was sent: "no such image has been provided". What was provided
/// and what is asked for ("please attach the file to your claim") may be what the answer is about.
fn gives_none(opening: &str) -> bool {
    GIVEN.iter().flat_map(|given| opening.match_indices(given)).any(|(at, _)| {
        let before = opening.get(..at).unwrap_or_default();
        let clause = before.rsplit(['.', ',', ';', ':', '!', '?']).next().unwrap_or_default();
        let clause = clause.rsplit(" that ").next().unwrap_or_default();
        clause.split(' ').any(|word| matches!(word, "no" | "none" | "nothing"))
    })
}

/// How it is said that something was sent, or was not.
const GIVEN: [&str; 6] = [
    "was provided",
    "were provided",
    "been provided",
    "was attached",
    "was uploaded",
    "was included",
];

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
            "seems to be missing.",
            "appears to be missing.",
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
        &["没有提供", "未提供", "没有看到", "没有上传", "未上传", "没有附", "看不到"],
    ),
    (
        &["文書", "ドキュメント", "ファイル", "添付", "画像"],
        &[
            "提供されていません",
            "添付されていません",
            "見当たりません",
            "確認できません",
            "見えません",
        ],
    ),
    (
        &["документ", "файл", "вложени", "изображени"],
        &["не предоставлен", "не приложен", "не вижу", "не прикреп", "не был загружен"],
    ),
];

#[cfg(test)]
mod tests {
    use super::super::wording::heard;

    #[test]
    fn what_is_missing_is_said_with_a_no() {
        for missing in [
            "no document was provided, so i cannot summarise it.",
            "i'm sorry, but no such image or text has been provided.",
            "none of the files were provided.",
            "the document seems to be missing.",
            "es wurde kein dokument angehängt.",
            "aucun fichier n'a été fourni.",
        ] {
            assert!(heard(missing).misses, "{missing}");
        }
    }

    #[test]
    fn an_answer_about_what_was_sent_misses_nothing() {
        for answer in [
            "based on the document that was provided, prices rose.",
            "the files were provided by the court, and no fee is due.",
            "there is no doubt that the text has been provided in good faith.",
            "please attach the file to your claim.",
            "please provide the signed document by friday.",
            "the document appears to be missing a signature.",
            "bitte laden sie die datei herunter und unterschreiben sie.",
            "veuillez fournir le document avant lundi.",
            "por favor, adjunta el documento a la solicitud.",
            "请提供身份证文件。",
            "пожалуйста, загрузите файл на портал.",
        ] {
            assert!(!heard(answer).misses, "{answer}");
        }
    }
}
