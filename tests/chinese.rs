//! The commands in Chinese. Each runs in a process of its own, since the language is the whole process's.

use std::process::Command;

use serde_json::Value;

use crate::support::sample;

/// What a command prints in a language.
fn said_in(language: &str, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_vramscope"))
        .args(arguments)
        .env("VRAMSCOPE_LANG", language)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn chinese(arguments: &[&str]) -> String {
    said_in("zh_CN.UTF-8", arguments)
}

fn leak() -> String {
    sample("val_without_no_grad").display().to_string()
}

/// The report as JSON in both languages: English, then Chinese.
fn reports(leak: &str) -> [Value; 2] {
    ["en", "zh_CN"].map(|language| {
        let json = said_in(language, &["report", leak, "--format", "json"]);
        serde_json::from_str(&json).expect("JSON")
    })
}

#[test]
fn a_report_says_in_chinese_what_was_found() {
    let leak = leak();
    let [english, _] = reports(&leak);
    let findings = english["findings"].as_array().expect("findings");
    assert!(!findings.is_empty());
    let html = chinese(&["report", &leak, "--format", "html"]);
    assert!(html.contains("<html lang=\"zh-CN\">"));
    for text in [html, chinese(&["report", &leak, "--format", "md"])] {
        for words in ["到记录结束时未释放", "前向传播的计算图", "诊断", "验证方法", "留存，按调用位置"]
        {
            assert!(text.contains(words), "{words}");
        }
        for finding in findings {
            let advice = finding["advice"].as_str().unwrap_or_default();
            let sentences = finding["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for sentence in sentences.chain([finding["title"].as_str().unwrap_or_default()]) {
                assert!(!text.contains(sentence), "{sentence}");
            }
            // Up to the first backtick, which the formats write in their own ways.
            assert!(!text.contains(advice.split('`').next().unwrap_or_default()), "{advice}");
        }
    }
}

#[test]
fn the_contract_is_the_same_in_both_languages() {
    let leak = leak();
    let [mut english, mut chinese_report] = reports(&leak);
    for report in [&mut english, &mut chinese_report] {
        without_sentences(report);
    }
    assert_eq!(english, chinese_report);
    for arguments in [
        ["report", &leak, "--format", "csv"],
        ["export", &leak, "--table", "steps"],
        ["export", &leak, "--table", "samples"],
    ] {
        assert!(said_in("en", &arguments) == chinese(&arguments), "{arguments:?}");
    }
}

/// Takes the texts for people out of a report: what is left is for scripts.
fn without_sentences(value: &mut Value) {
    const SENTENCES: [&str; 9] =
        ["summary", "label", "selection", "evidence", "warnings", "title", "confirm", "advice", "finding"];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !SENTENCES.contains(&name.as_str()));
            fields.values_mut().for_each(without_sentences);
        }
        Value::Array(values) => values.iter_mut().for_each(without_sentences),
        _ => {}
    }
}

#[test]
fn what_a_file_is_and_what_differs_is_said_in_chinese() {
    let leak = leak();
    let inspected = chinese(&["inspect", &leak]);
    for words in
        ["20,255 次分配", "时钟：Unix 时间；同一时钟", "按重叠和相关性确定时区", "没有其他时区能重叠"]
    {
        assert!(inspected.contains(words), "{words}: {inspected}");
    }
    assert!(!inspected.contains("allocations are alive"), "{inspected}");
    let healthy = sample("healthy").display().to_string();
    assert!(chinese(&["compare", &healthy, &leak]).contains("结束时存活"));
}

#[test]
fn names_are_replaced_in_chinese_sentences_too() {
    let leak = leak();
    let text = chinese(&["report", &leak, "--format", "md", "--redact"]);
    for name in ["snapshot.pickle", "trace.json", "train.log", "/home/", "segtrainer"] {
        assert!(!text.contains(name), "{name}: {text}");
    }
}
