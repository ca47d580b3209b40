//! What is masked, and what is not.

use super::*;

#[test]
fn every_pattern_compiles_and_has_literals() {
    let (patterns, secrets) = &*SECRETS;
    assert!(secrets.iter().all(Single::compiles));
    crate::policy::patterns::tests::nothing_is_missed(PATTERNS);
    let no_literal: Vec<u8> = (0..=u8::MAX).flat_map(|byte| [byte, 1]).collect();
    assert!(patterns.possible(&no_literal).is_empty());
}

#[test]
fn names_and_values_of_secrets() {
    for name in [
        "GITHUB_TOKEN",
        "npm_token",
        "TOKEN_FILE",
        "DB_PASSWD",
        "MY_CREDENTIAL",
        "OPENAI_API_KEY",
        "HTTP_AUTH",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "GIT_AUTHOR_NAME",
        "SSH_AUTH_SOCK",
        "AUTH_MODE",
        "TOKENIZERS",
        "KEYBOARD",
        "KEY_ID",
        "PWDX",
        "MONKEY",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
    let env = [
        ("A_TOKEN", "tok-12345678"),
        ("B_TOKEN", "short-1"),
        ("C_TOKEN", "lettersonly"),
        ("D_TOKEN", "/usr/bin"),
        ("E_SECRET", "one-line-1\n\n two-line-22 \n"),
        ("F_TOKEN", "tok-12345678-longer"),
        ("PLAIN", "plain-12345678"),
        ("NAMED", "named \"12345678\""),
        ("PIN", "4711"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = RedactSettings {
        patterns: vec!["ACME-[0-9]+".to_owned()],
        variables: ["NAMED", "PIN"].map(str::to_owned).to_vec(),
    };
    let redactor = Redactor::new(env, &settings, |value| value == "/usr/bin");
    assert_eq!(
        redactor.values(),
        [
            "tok-12345678-longer",
            "named \"12345678\"",
            "tok-12345678",
            "two-line-22",
            "one-line-1",
            "4711"
        ]
    );
    let text = "x tok-12345678-longer tok-12345678, ACME-77 plain-12345678 short-1 /usr/bin";
    assert_eq!(
        redactor.redact(text),
        "x [redacted] [redacted], [redacted] plain-12345678 short-1 /usr/bin"
    );
    let text = r#"pin 4711, {"a": "named \"12345678\""}"#;
    assert_eq!(
        redactor.redact(text),
        r#"pin [redacted], {"a": "[redacted]"}"#
    );
    assert!(
        Redactor {
            patterns: Vec::new(),
            ..redactor
        }
        .may_be_in(text)
    );
}

#[test]
fn a_document_is_redacted_with_its_names() {
    let document = serde_json::json!({
        "password=hunter22": 1, "password=hunter23": [{"a": "Authorization: Bearer abcdefgh12"}], "n": 3, "ok": "fine"
    });
    let shown = redact_json(document.clone());
    assert_eq!(
        shown.to_string(),
        r#"{"password=[redacted]":1,"password=[redacted]-2":[{"a":"Authorization: Bearer [redacted]"}],"n":3,"ok":"fine"}"#
    );
    let text = redacted_json_text(&document).unwrap();
    assert!(
        !text.contains("hunter") && text.contains("\n  \"ok\": \"fine\""),
        "{text}"
    );
}

// What is escaped in a JSON text is looked for as it is.
#[test]
fn a_document_as_text_is_redacted_as_the_document_is() {
    for (secret, shown) in [
        ("MY_TOKEN\t= abcd1234", r"MY_TOKEN\t= [redacted]"),
        ("bearer\u{c}abcdefgh12", r"bearer\f[redacted]"),
        (
            "authorization\u{b}: abcd \\",
            r"authorization\u000b: [redacted] \\",
        ),
    ] {
        let document = serde_json::json!([{ "a": secret }, "fine"]);
        let text = redacted_json_text(&document).unwrap();
        assert_eq!(
            text,
            serde_json::to_string_pretty(&redact_json(document.clone())).unwrap()
        );
        assert!(text.contains(shown), "{text}");
        assert!(may_hold_secret(&document.to_string()));
    }
    assert!(
        may_hold_secret(r#"["\ud83d\ude00"]"#)
            && may_hold_secret(r#"["\u00e4"]"#)
            && !may_hold_secret(r#"["ä\\"]"#)
    );
}

proptest::proptest! {
    // One that holds nothing is not even read, and nothing is missed by that.
    #[test]
    fn whatever_a_document_holds_is_found_in_its_text(
        words in proptest::collection::vec("(TOKEN|secret|sk-|bearer|[ =:\t\"\\\\é])[ =:\t\n\"'\\\\a-f0-9]{0,14}", 1..5),
    ) {
        let document = serde_json::json!({ words[0].as_str(): words });
        let shown = redact_json(document.clone());
        proptest::prop_assert!(shown == document || may_hold_secret(&document.to_string()));
        proptest::prop_assert_eq!(redacted_json_text(&document).unwrap(), serde_json::to_string_pretty(&shown).unwrap());
        let text = serde_json::to_string(&words[0]).unwrap();
        proptest::prop_assert_eq!(unescaped(&text).unwrap(), format!("\"{}\"", words[0]));
    }
}

#[test]
fn what_is_as_deep_as_can_be_read_is_redacted_with_what_is_around_it() {
    let read: Value = serde_json::from_str(&format!(
        "{}\"password=hunter22\"{}",
        "[".repeat(126),
        "]".repeat(126)
    ))
    .unwrap();
    let text =
        redacted_json_text(&serde_json::json!({"events": [{"payload": {"a": read}}]})).unwrap();
    assert!(
        text.contains("password=[redacted]") && !text.contains("hunter"),
        "{text}"
    );
}

#[test]
fn a_private_key_goes_whatever_its_lines_begin_with() {
    let lines =
        ["MIIEow", "+IBAAK", "/CAQEA"].map(|begin| format!("{begin}{}\n", "a1B/c+".repeat(9)));
    let key = format!(
        "{}QmFzZTY0==\n-----END RSA PRIVATE KEY-----",
        lines.concat()
    );
    assert_eq!(
        redact(&format!("cut off:\n{key}\n")),
        format!("cut off:\n{REDACTED}\n")
    );
}

#[test]
fn tokens_of_services_go_and_what_looks_like_one_stays() {
    const LONG: &str =
        "7aB3dE5gH1jK2mN4pQ6rS8tU0vW9xY1zA3bC5dE7fG9hJ2kL4mN6pQ8rS0tU2vW4xY6zA8bC0dE2fG4h";
    const HEX: &str = "0123456789abcdef0123456789abcdef";
    let masked = |text: String, expected: &str| assert_eq!(redact(&text), expected, "{text}");
    for (begin, length) in [
        ("glrt-", 20),
        ("gldt-", 20),
        ("gsk_", 52),
        ("xai-", 80),
        ("hvs.", 80),
        ("lin_api_", 40),
        ("dp.pt.", 43),
        ("dp.st.prd_eu.", 43),
        ("cio", 32),
    ] {
        masked(
            format!("use {begin}{} now", &LONG[..length]),
            "use [redacted] now",
        );
    }
    for begin in ["dapi", "shpat_"] {
        masked(format!("use {begin}{HEX}, now"), "use [redacted], now");
    }
    masked(
        format!("AGE-SECRET-KEY-1{}", &LONG[..58].to_uppercase()),
        REDACTED,
    );
    let bot = format!("123456789:AA{}", &LONG[..33]);
    masked(format!("a {bot}, b"), "a [redacted], b");
    masked(
        format!("https://api.telegram.org/bot{bot}/getMe"),
        "https://api.telegram.org/bot[redacted]/getMe",
    );
    masked(
        format!(
            "POST https://discord.com/api/webhooks/123456789012345678/{} 204",
            &LONG[..68]
        ),
        "POST https://discord.com/api/webhooks/123456789012345678/[redacted] 204",
    );
    masked(
        format!(
            "https://a.blob.core.windows.net/c?sv=2022-11-02&sig={}%3D&se=2026",
            &LONG[..43]
        ),
        "https://a.blob.core.windows.net/c?sv=2022-11-02&sig=[redacted]&se=2026",
    );
    masked(
        format!(r#"{{"x.io": {{"auth": "{}"}}}}"#, &LONG[..40]),
        r#"{"x.io": {"auth": "[redacted]"}}"#,
    );
    masked(
        r#""{\"auth\":\"Ym9iOmh1bnRlcjI=\"}""#.to_owned(),
        r#""{\"auth\":\"[redacted]\"}""#,
    );
    masked(
        "machine git.example.com login bob password hunter22\nmachine b\n  login eve\n  password x"
            .to_owned(),
        "machine git.example.com login bob password [redacted]\nmachine b\n  login eve\n  password [redacted]",
    );
    masked(
        "mysql -u root -phunter22 prod".to_owned(),
        "mysql -u root -p[redacted] prod",
    );
    masked(
        "mysqldump -p'2026x!' prod".to_owned(),
        "mysqldump -p'[redacted]' prod",
    );
    for text in [
        "mysql -u root -p prod",
        "mysql -P 3306 -h db",
        "docker run --name mysql -p3306:3306 mysql:8",
        "apt install mysql; mkdir -pv /var/lib/mysql",
        "docker exec mysql mkdir -pv /x",
        "machine learning password reset, login and password fields",
        r#""auth": "basicAuthentication", "auth": "oauth2", "auth": "bearer""#,
        "?sig=v1&b, design=0123456789012345678901234567890123456789",
        "12:30:45 at 10:Apr, 1234:A, 2026:ABCDEFGHIJ",
        "1234567:A0123456789abcdef0123456789abcdef0123456789abcdef",
        "https://discord.com/channels/123456789012345678/123456789012345678",
        "glrt-short xai-grok-4-fast-reasoning gsk_test hvs.rs dp.pt.x lin_api_key shpat_x",
        "ciouptime dapi0123 AGE-SECRET-KEY-1 cio_0123456789abcdef0123456789abcdef",
        "gldt-config-file cios0123456789abcdef0123456789abcdef0",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn secrets_go_and_the_rest_stays() {
    for (text, expected) in [
        (
            "url https://user:hunter2@git.example.com/x.git",
            "url https://user:[redacted]@git.example.com/x.git",
        ),
        (
            "Authorization: Bearer abc.def.ghi",
            "Authorization: [redacted]",
        ),
        ("Authorization:p", "Authorization:[redacted]"),
        (
            "pa\u{17f}\u{17f}word=hunter2222",
            "pa\u{17f}\u{17f}word=[redacted]",
        ),
        ("bearer\u{a0}abcdefghi", "bearer\u{a0}[redacted]"),
        (
            "key sk-proj-********************aBcD. You",
            "key [redacted]. You",
        ),
        (
            "SG.abcdefghijklmnopqrstuv.ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno-_1 sent, SG.1 not",
            "[redacted] sent, SG.1 not",
        ),
        (
            "POST https://hooks.slack.com/services/T000000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX 200",
            "POST https://hooks.slack.com/services/[redacted] 200",
        ),
        (
            "git clone https://q7Wx3ZrT9vLmK2pYb8Nc@git.example.com/x",
            "git clone https://[redacted]@git.example.com/x",
        ),
        (
            "ssh://deploy-2026@git.example.com/x",
            "ssh://deploy-2026@git.example.com/x",
        ),
        (
            "curl -sSu bob:hunter22 https://x.example",
            "curl -sSu bob:[redacted] https://x.example",
        ),
        (
            "curl --user 'bob:hunter22' -o a:b https://x",
            "curl --user 'bob:[redacted]' -o a:b https://x",
        ),
        (
            "curl -o u:v https://x.example",
            "curl -o u:v https://x.example",
        ),
        ("xapp-1-A7391846205-8264913750-kLmP3r", "[redacted]"),
        (
            "SK7f3a9c1e5b8d2046f7a9c3e1b5d80246 is it",
            "[redacted] is it",
        ),
        (
            "AccountName=acme;AccountKey=q7Wx3ZrT9vLmK2==;EndpointSuffix=x",
            "AccountName=acme;AccountKey=[redacted];EndpointSuffix=x",
        ),
        (
            r#"{"token": "kq83zz71plain9"}"#,
            r#"{"token": "[redacted]"}"#,
        ),
        (
            r#""{\"token\":\"kq83zz71plain9\"}""#,
            r#""{\"token\":\"[redacted]\"}""#,
        ),
        (
            r#"{"token": "Identifier", "tokens": "12345678"}"#,
            r#"{"token": "Identifier", "tokens": "12345678"}"#,
        ),
        ("AWS AKIAIOSFODNN7EXAMPLE used", "AWS [redacted] used"),
        ("password = \"pa55word\" ok", "password = \"[redacted]\" ok"),
        (
            "OPENAI_API_KEY=abcd1234 cargo test",
            "OPENAI_API_KEY=[redacted] cargo test",
        ),
        ("token ghp_0123456789abcdefghij", "token [redacted]"),
        ("TOKEN=abcd run", "TOKEN=[redacted] run"),
        ("/x?token=ab3def01&b", "/x?token=[redacted]&b"),
        ("expected token=Identifier", "expected token=Identifier"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nnext",
            "[redacted]\nnext",
        ),
        (
            "aGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8\naGVsbG8=\n-----END PRIVATE KEY-----\nnext",
            "[redacted]\nnext",
        ),
        (
            "12 tokens used, password test failed",
            "12 tokens used, password test failed",
        ),
        ("http://localhost:8080/a@b", "http://localhost:8080/a@b"),
        ("secret: hunter22xyz", "secret: [redacted]"),
        (
            "cat: secret: Permission denied",
            "cat: secret: Permission denied",
        ),
        (
            "secret: No such file or directory (os error 2)",
            "secret: No such file or directory (os error 2)",
        ),
        (
            "api_key: permission denied-x",
            "api_key: [redacted] denied-x",
        ),
        ("secret: Permission", "secret: [redacted]"),
        (
            "authorization failed for user bob",
            "authorization failed for user bob",
        ),
        (
            r#"{"authorization": "Bearer abcdefgh12"}"#,
            r#"{"authorization": "[redacted]"}"#,
        ),
        (
            "self.api_key = api_key; password: String, password: null",
            "self.api_key = api_key; password: String, password: null",
        ),
        ("secret=Permission denied", "secret=[redacted] denied"),
        (
            r#"curl -d "{\"password\":\"hunter22xyz7\"}" x"#,
            r#"curl -d "{\"password\":\"[redacted]\"}" x"#,
        ),
        (
            r#"sh -c "c -d \"{\\\"api_key\\\": \\\"hunter22\\\", \\\"a\\\": 1}\"""#,
            r#"sh -c "c -d \"{\\\"api_key\\\": \\\"[redacted]\\\", \\\"a\\\": 1}\"""#,
        ),
        (
            r#""{\\\"token\\\":\\\"kq83zz71plain9\\\"}""#,
            r#""{\\\"token\\\":\\\"[redacted]\\\"}""#,
        ),
        (
            r#""{\"Authorization\": \"Basic aGVsbG86eA==\"}""#,
            r#""{\"Authorization\": \"Basic [redacted]\"}""#,
        ),
        (
            r#"sh -c "API_TOKEN=\"abcd\" run; curl -u \"bob:hunter\" x""#,
            r#"sh -c "API_TOKEN=\"[redacted]\" run; curl -u \"bob:[redacted]\" x""#,
        ),
        (
            r"password=pa\ss\\word and more",
            "password=[redacted] and more",
        ),
        (
            r#""{\"password\":\"\",\"user\":\"bob\"}""#,
            r#""{\"password\":\"\",\"user\":\"bob\"}""#,
        ),
    ] {
        let redacted = redact(text);
        let normal = redacted.replace("Bearer [redacted]", "[redacted]");
        assert_eq!(normal, expected);
        assert_eq!(redact(&redacted), redacted, "what is redacted stays");
    }
}
