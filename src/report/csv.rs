//! The groups of a report as a table for spreadsheets.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::Report;

const HEADER: [&str; 9] =
    ["group", "count", "bytes", "call_site", "ops", "first_step", "last_step", "per_step_bytes", "stack"];

/// One row a group. Cells that a spreadsheet would take for a formula begin with an apostrophe.
pub(super) fn render(report: &Report) -> anyhow::Result<Vec<u8>> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER)?;
    for group in &report.groups {
        let step = |of: fn(&super::GroupSteps) -> String| group.steps.as_ref().map(of).unwrap_or_default();
        let cells = [
            group.key.clone(),
            group.count.to_string(),
            group.bytes.to_string(),
            group.call_site.clone(),
            group.ops.join("; "),
            step(|steps| steps.first.to_string()),
            step(|steps| steps.last.to_string()),
            step(|steps| steps.per_step_bytes.to_string()),
            group.stack.join(" < "),
        ];
        writer.write_record(cells.iter().map(|cell| guard(cell).into_owned()))?;
    }
    Ok(writer.into_inner()?)
}

/// What a spreadsheet would take for a formula begins with this, behind what can't be seen. East Asian ones take wide
/// signs too.
pub(crate) const FORMULA: &str = r"^([\s\p{Cc}\p{Cf}\p{DI}]*[=+@\t\r\n＝＋－＠-])";

/// Text that a spreadsheet shows as it stands. Numbers, negative ones too, stay numbers.
pub(crate) fn guard(cell: &str) -> Cow<'_, str> {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| Regex::new(FORMULA).expect("a pattern of ours"));
    if PATTERN.is_match(cell) && cell.parse::<f64>().is_err() {
        Cow::Owned(format!("'{cell}"))
    } else {
        Cow::Borrowed(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_guarded_and_numbers_are_not() {
        for risky in [
            "=1+1",
            "+cmd|' /C calc'!A0",
            "-2+3",
            "@SUM(A1)",
            "\tx",
            "\r=1",
            " =1",
            "＝1+1",
            "＋1",
            "－1+1",
            "＠A",
            "\u{feff}=1",
            "\u{200b} \u{2060}=1",
            "\u{a0}+A",
            "\u{1}\u{3164}@A",
        ] {
            assert_eq!(guard(risky), format!("'{risky}"), "{risky}");
        }
        for plain in ["record.py:63 validate", "-12", "+3", "a=b", "\u{feff}a=b", ""] {
            assert_eq!(guard(plain), plain);
        }
    }
}
