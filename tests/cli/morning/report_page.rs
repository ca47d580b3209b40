//! The HTML report in a real browser, Chromium: its width, its colours, what is folded, what is printed.
//!
//! No script of the page runs; the browser is asked through its `DevTools` protocol.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::attempts::quick;

/// Where pictures of the pages are written, where a folder is named.
const PICTURES: &str = "RECOVER_TEST_PICTURES";

/// A headless Chromium with one page.
struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: Option<String>,
    /// Of the message that was sent last.
    id: AtomicU32,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// `None` where there is none.
    fn open(env: &TestEnv) -> Option<Self> {
        let named = ["chromium", "chromium-browser", "google-chrome"];
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&folders)
            .flat_map(|folder| named.map(|name| folder.join(name)))
            .find(|path| path.is_file());
        let Some(program) = program else {
            eprintln!("skipped: the report in a browser: chromium is not installed");
            return None;
        };
        // It reads messages from descriptor 3 and answers to descriptor 4, each ended by a zero byte.
        let pipes = ["to", "from"].map(|name| env.root().join(name));
        for pipe in &pipes {
            let made = env.command("mkfifo").arg(pipe).status();
            assert!(made.expect("mkfifo starts").success());
        }
        let line = "exec \"$0\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                    --disable-background-networking --user-data-dir=\"$1\" --remote-debugging-pipe 3< \"$2\" 4> \"$3\"";
        let child = env
            .command("sh")
            .args(["-c", line])
            .arg(program)
            .arg(env.root().join("profile"))
            .args(&pipes)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        let to = File::options().write(true).open(&pipes[0]).expect("a pipe");
        let from = BufReader::new(File::open(&pipes[1]).expect("a pipe"));
        let id = AtomicU32::new(0);
        let mut browser = Self {
            child,
            to,
            from,
            session: None,
            id,
        };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attached = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", &attached);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", &json!({}));
        browser.call(
            "Emulation.setScriptExecutionDisabled",
            &json!({"value": true}),
        );
        Some(browser)
    }

    fn read(&mut self) -> Value {
        let mut message = Vec::new();
        self.from
            .read_until(0, &mut message)
            .expect("the browser answers");
        message.pop();
        serde_json::from_slice(&message).expect("JSON")
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.id.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .expect("the browser reads");
        loop {
            let mut answer = self.read();
            if answer["id"] == id {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    /// Shows a file on a screen of this width.
    fn show(&mut self, page: &Path, width: u32, scheme: &str) {
        let size =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &features);
        let url = format!("file://{}", page.display());
        self.call("Page.navigate", &json!({"url": url}));
        while self.ask("document.readyState") != "complete" {}
    }

    /// What an expression comes to in the page.
    fn ask(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", &params);
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].take()
    }

    fn click(&mut self, selector: &str) {
        let place = self.ask(&format!(
            "(() => {{ const e = document.querySelector('{selector}'); e.scrollIntoView({{block: 'center'}});
              const r = e.getBoundingClientRect(); return [r.left + 20, r.top + r.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// How many pages are printed.
    fn print(&mut self, picture: &str) -> u64 {
        // A4, in inches.
        let paper = json!({"printBackground": true, "paperWidth": 8.27, "paperHeight": 11.69});
        let printed = self.call("Page.printToPDF", &paper);
        let pdf = decoded(&printed["data"]);
        save(picture, &pdf);
        let text = String::from_utf8_lossy(&pdf);
        let (_, pages) = text.split_once("/Count ").expect("a tree of pages");
        let digits: String = pages.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("how many there are")
    }

    fn picture(&mut self, name: &str) {
        if std::env::var_os(PICTURES).is_some() {
            let whole = json!({"captureBeyondViewport": true, "format": "png"});
            let taken = self.call("Page.captureScreenshot", &whole);
            save(name, &decoded(&taken["data"]));
        }
    }
}

fn decoded(data: &Value) -> Vec<u8> {
    let data = data.as_str().expect("base64");
    base64::engine::general_purpose::STANDARD
        .decode(data)
        .expect("base64")
}

fn save(name: &str, bytes: &[u8]) {
    if let Some(folder) = std::env::var_os(PICTURES) {
        fs::write(PathBuf::from(folder).join(name), bytes).expect("a picture");
    }
}

/// Texts whose colours are too like, by WCAG 2 AA: 4.5 to 1, or 3 to 1 where they are large.
const CONTRAST: &str = "(() => {
  const parse = c => c.match(/[\\d.]+/g).map(Number);
  const luminance = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const poor = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement, style = getComputedStyle(e);
    if (!texts.currentNode.data.trim() || !e.getClientRects().length) continue;
    seen += 1;
    const [a, b] = [luminance(parse(style.color)), luminance(behind(e))].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    const ratio = (a + .05) / (b + .05);
    if (ratio < (large ? 3 : 4.5)) poor.push(ratio.toFixed(2) + ' ' + texts.currentNode.data.trim().slice(0, 40));
  }
  return seen < 20 ? ['only ' + seen + ' texts'] : poor;
})()";

/// The report of a run, beside its project.
fn report(env: &TestEnv) -> PathBuf {
    let page = env.root().join("report.html");
    env.json(
        0,
        &[
            "report",
            "--run",
            "night",
            "-o",
            page.to_str().expect("UTF-8"),
        ],
    );
    page
}

/// What holds for every page.
fn sound(browser: &mut Browser, page: &Path, name: &str) {
    for width in [1280, 390] {
        for scheme in ["light", "dark"] {
            browser.show(page, width, scheme);
            browser.ask("document.querySelectorAll('details').forEach(one => one.open = true)");
            let wide = browser.ask("document.documentElement.scrollWidth");
            assert!(
                wide.as_u64().is_some_and(|wide| wide <= width.into()),
                "{width}: {wide}"
            );
            assert_eq!(
                browser.ask(CONTRAST),
                json!([]),
                "{name}, {width}, {scheme}"
            );
            browser.picture(&format!("{name}-{width}-{scheme}-open.png"));
            browser.show(page, width, scheme);
            browser.picture(&format!("{name}-{width}-{scheme}.png"));
        }
    }
}

/// An agent whose records name what it did, and what that cost.
const AGENT: &str = r#"printf '{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"I write part %s."}]}}\n' $RECOVER_ITERATION
echo "fn part_$RECOVER_ITERATION() -> usize { 0 } // a line that is much longer than what a telephone has room for in its width, and is not broken" >> parts.rs
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s","total_cost_usd":0.4,"usage":{"input_tokens":9000,"output_tokens":700},"result":"Wrote part %s and its test, and documented both of them in the guide."}\n' $RECOVER_ITERATION"#;

// One page to print; each iteration opens without a script, with its diff and its log as text.
#[test]
fn a_good_night_is_one_page() {
    let env = quick();
    env.script("agent.sh", AGENT);
    let run = [
        "run",
        "--run",
        "night",
        "--iterations",
        "12",
        "--prompt",
        "Write the parts.",
    ];
    let rest = [
        "--feedback",
        "test=echo '4 passed'",
        "--feedback",
        "lint=true",
        "--",
        "./agent.sh",
    ];
    env.json(0, &[&run[..], &rest].concat());
    let page = report(&env);
    let Some(mut browser) = Browser::open(&env) else {
        return;
    };
    sound(&mut browser, &page, "good");
    browser.show(&page, 1280, "light");
    assert_eq!(
        browser.ask("document.querySelectorAll('details[open]').length"),
        0
    );
    let seen = |text: &str| format!("document.querySelector('{text}').checkVisibility()");
    let diff = ".iteration .diff .added";
    assert_eq!(browser.ask(&seen(diff)), false);
    browser.click(".iteration > summary");
    browser.click(".iteration .work > summary");
    assert_eq!(browser.ask(&seen(diff)), true);
    let said = browser.ask("document.querySelector('.iteration').textContent");
    let said = said.as_str().expect("text");
    for text in [
        "Wrote part 1 and its test",
        "I write part 1.",
        "+fn part_1()",
        "$0.40",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
    assert!(
        !said.contains("\"type\""),
        "the log is no raw record: {said}"
    );
    let first = browser.ask("document.querySelector('header').textContent");
    let first = first.as_str().expect("text");
    for text in ["$4.80", "accept", "recommended", "UTC"] {
        assert!(first.contains(text), "{text}: {first}");
    }
    browser.show(&page, 1280, "light");
    assert_eq!(browser.print("good.pdf"), 1);
}

// What failed is open: with its output, its check and the names of the failing tests.
#[test]
fn a_bad_night_shows_what_failed() {
    let env = quick();
    env.script(
        "agent.sh",
        &format!("{AGENT}\n[ $RECOVER_ITERATION = 2 ] && echo bad > state || echo good > state"),
    );
    env.script(
        "check.sh",
        "grep -qx good state || { echo 'FAILED tests/test_parts.py::test_total - assert 1 == 2'; \
         echo 'FAILED tests/test_parts.py::test_sum - assert 3 == 4'; echo '2 failed, 7 passed'; exit 1; }; echo '9 passed'",
    );
    env.write("state", "good\n");
    let run = [
        "run",
        "--run",
        "night",
        "--iterations",
        "4",
        "--attempts",
        "2",
    ];
    env.json(
        8,
        &[
            &run[..],
            &["--feedback", "test=./check.sh", "--", "./agent.sh"],
        ]
        .concat(),
    );
    let page = report(&env);
    let Some(mut browser) = Browser::open(&env) else {
        return;
    };
    sound(&mut browser, &page, "bad");
    browser.show(&page, 1280, "light");
    assert_eq!(
        browser.ask("document.querySelectorAll('.iteration[open]').length"),
        1
    );
    let open = browser.ask("document.querySelector('.iteration[open]').innerText");
    let open = open.as_str().expect("text");
    for text in [
        "Iteration 2",
        "given up",
        "test_total",
        "test_sum",
        "2 failed, 7 passed",
    ] {
        assert!(open.contains(text), "{text}: {open}");
    }
    assert!(browser.print("bad.pdf") <= 3);
}

// A patch of any length, and what it holds, is text of a bounded length.
#[test]
fn a_long_and_hostile_diff_is_cut_and_masked() {
    let env = quick();
    let hostile =
        "<script>alert(1)</script></pre><b>& token=ghp_0123456789abcdefghijABCDEFGHIJ012345";
    env.script(
        "agent.sh",
        &format!("seq 1 1000 > long.txt; cat > odd.txt <<'END'\n{hostile}\nEND\ncat odd.txt"),
    );
    env.json(0, &["run", "--run", "night", "--", "./agent.sh"]);
    let page = fs::read_to_string(report(&env)).expect("a page");
    assert!(
        page.contains("&lt;script&gt;") && !page.contains("<script"),
        "{page}"
    );
    assert!(!page.contains("ghp_0123456789"), "{page}");
    assert!(
        page.contains("+300\n") && !page.contains("+500\n"),
        "{page}"
    );
    assert!(page.contains(" lines more"), "{page}");
}

// Times are those of whoever made it, with their zone.
#[test]
fn times_are_local() {
    let mut env = quick();
    env.set("TZ", "Asia/Kolkata")
        .set("RECOVER_TEST_NOW", "2026-01-05T20:00:00Z");
    env.json(0, &["run", "--run", "night", "--", "true"]);
    let page = fs::read_to_string(report(&env)).expect("a page");
    assert!(page.contains("2026-01-06 01:30:00 UTC+05:30"), "{page}");
    assert!(page.contains("datetime=\"2026-01-05T20:00:00"), "{page}");
}
