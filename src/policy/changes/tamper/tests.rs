//! Tampering with tests: what is reported, and what is not.

use proptest::prelude::*;

use super::*;
use crate::model::manifest::ObjectId;
use crate::policy::changes::Content;

fn content(text: &str) -> Content {
    Content {
        oid: ObjectId(format!("{text:?}")),
        text: Some(text.to_owned()),
    }
}

fn file(path: &str, before: Option<&str>, after: Option<&str>) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        before: before.map(content),
        after: after.map(content),
    }
}

fn notes(path: &str, before: &str, after: &str) -> Vec<String> {
    tampering(&[file(path, Some(before), Some(after))], &[])
}

fn by_command(command: &str, path: &str, before: &str, after: &str) -> bool {
    !tampering(
        &[file(path, Some(before), Some(after))],
        &[Loop {
            name: "test",
            command,
            dir: "",
        }],
    )
    .is_empty()
}

/// Path, before, after: the change weakens the tests.
const WEAKER: &[(&str, &str, &str)] = &[
    (
        "src/a.rs",
        "#[test]\nfn a() { assert!(x); }\n#[test]\nfn b() { assert!(y); }\n",
        "#[test]\nfn a() { assert!(x); }\n",
    ),
    (
        "src/a.rs",
        "#[test]\nfn a() {\n assert!(x);\n}\n",
        "#[test]\n#[ignore]\nfn a() {\n assert!(x);\n}\n",
    ),
    (
        "src/a.rs",
        "#[test]\nfn a() {\n assert!(x);\n}\n",
        "#[ignore = \"later\"]\n#[test]\nfn a() {\n assert!(x);\n}\n",
    ),
    (
        "src/a.rs",
        "#[tokio::test]\nasync fn a() {\n assert_eq!(f(), 2);\n}\n",
        "#[tokio::test]\nasync fn a() {\n assert!(true);\n}\n",
    ),
    (
        "tests/test_a.py",
        "def test_a():\n    assert f() == 1\ndef test_b():\n    assert f() == 2\n",
        "def test_a():\n    assert f() == 1\n",
    ),
    (
        "tests/test_a.py",
        "def test_a():\n    assert f() == 1\n",
        "@pytest.mark.skip\ndef test_a():\n    assert f() == 1\n",
    ),
    (
        "tests/test_a.py",
        "def test_a():\n    assert f() == 1\n",
        "@pytest.mark.xfail(reason='x')\ndef test_a():\n    assert f() == 1\n",
    ),
    (
        "tests/test_a.py",
        "def test_a():\n    assert f() == 1\n",
        "def test_a():\n    assert True\n",
    ),
    (
        "tests/test_a.py",
        "def test_a():\n    assert f() == 1\n",
        "def test_a():\n    # assert f() == 1\n    pass\n",
    ),
    (
        "test_a.py",
        "def test_a():\n    assert f() == 1\n",
        "def a():\n    assert f() == 1\n",
    ),
    (
        "test_a.py",
        "class T(TestCase):\n    def test_a(self):\n        self.assertEqual(f(), 1)\n",
        "class T(TestCase):\n    def test_a(self):\n        self.skipTest('no')\n        self.assertEqual(f(), 1)\n",
    ),
    (
        "a.test.ts",
        "it('adds', () => { expect(add(1, 2)).toBe(3) })\n",
        "it.skip('adds', () => { expect(add(1, 2)).toBe(3) })\n",
    ),
    (
        "a.test.ts",
        "it('adds', () => { expect(add(1, 2)).toBe(3) })\n",
        "xit('adds', () => { expect(add(1, 2)).toBe(3) })\n",
    ),
    (
        "a.test.ts",
        "describe('a', () => {\n it('adds', () => {})\n it('takes', () => {})\n})\n",
        "describe('a', () => {\n it.only('adds', () => {})\n it('takes', () => {})\n})\n",
    ),
    (
        "a.spec.js",
        "describe('a', () => {})\ntest('b', () => {})\n",
        "describe.skip('a', () => {})\ntest('b', () => {})\n",
    ),
    (
        "a.spec.js",
        "test('b', () => {\n expect(f()).toBe(2)\n})\n",
        "test('b', () => {\n expect(true).toBe(true)\n})\n",
    ),
    (
        "a_test.go",
        "func TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Fatal(\"x\")\n\t}\n}\n",
        "func TestA(t *testing.T) {\n\tt.Skip()\n\tif f() != 1 {\n\t\tt.Fatal(\"x\")\n\t}\n}\n",
    ),
    (
        "a_test.go",
        "func TestA(t *testing.T) {\n\tt.Run(\"one\", g)\n\tt.Run(\"two\", g)\n}\n",
        "func TestA(t *testing.T) {\n\tt.Run(\"one\", g)\n}\n",
    ),
    (
        "src/test/java/ATest.java",
        "@Test\nvoid adds() { assertEquals(3, add(1, 2)); }\n",
        "@Disabled\n@Test\nvoid adds() { assertEquals(3, add(1, 2)); }\n",
    ),
    (
        "src/test/java/ATest.java",
        "@Test\nvoid adds() { assertEquals(3, add(1, 2)); }\n@Test\nvoid b() { fail(); }\n",
        "@Test\nvoid adds() { assertEquals(3, add(1, 2)); }\n",
    ),
    (
        "A.Tests/Cart.cs",
        "[Fact]\npublic void A() { Assert.Equal(1, F()); }\n",
        "[Fact(Skip = \"x\")]\npublic void A() { Assert.Equal(1, F()); }\n",
    ),
    (
        "spec/a_spec.rb",
        "it 'adds' do\n  expect(f).to eq 1\nend\n",
        "xit 'adds' do\n  expect(f).to eq 1\nend\n",
    ),
    (
        "tests/ATest.php",
        "public function testA() {\n $this->assertSame(1, f());\n}\n",
        "public function testA() {\n $this->markTestSkipped();\n $this->assertSame(1, f());\n}\n",
    ),
    (
        "tests/a_test.cc",
        "TEST(A, Adds) {\n  EXPECT_EQ(1, f());\n}\n",
        "TEST(A, DISABLED_Adds) {\n  EXPECT_EQ(1, f());\n}\n",
    ),
    (
        "tests/run.sh",
        "grep -q ok out || exit 1\ncmp a b || exit 1\n",
        "exit 0\n",
    ),
];

/// The change is ordinary work.
const FINE: &[(&str, &str, &str)] = &[
    (
        "src/a.rs",
        "#[test]\nfn a() { assert!(x); }\n",
        "#[test]\nfn renamed() { assert!(x); }\n",
    ),
    (
        "src/a.rs",
        "#[test]\nfn a() { assert!(x); }\n",
        "#[test]\nfn a() { assert!(x); }\n#[test]\nfn b() { assert!(y); }\n",
    ),
    (
        "src/a.rs",
        "fn f() { assert!(x); g(); h(); }\n",
        "fn f() { assert!(x); }\n",
    ),
    (
        "src/a.py",
        "def test_connection():\n    pass\n",
        "def connect():\n    pass\n",
    ),
    (
        "tests/test_a.py",
        "@pytest.mark.skip\ndef test_a():\n    assert f() == 1\n",
        "def test_a():\n    assert f() == 1\n",
    ),
    (
        "tests/test_a.py",
        "@pytest.mark.skip(reason='a')\ndef test_a():\n    assert f()\n",
        "@pytest.mark.skip(reason='b')\ndef test_a():\n    assert f()\n",
    ),
    (
        "tests/test_a.py",
        "def test_a():\n    assert a\n    assert b\n    assert c\n",
        "def test_a():\n    assert a\n    assert b\n",
    ),
    (
        "tests/test_a.py",
        "def test_a():\n    assert a == 1\n    assert b == 2\n",
        "def test_a():\n    assert a == 11\n    assert b == 22\n",
    ),
    (
        "tests/test_a.py",
        "def test_a():\n    assert a\n",
        "# @pytest.mark.skip\ndef test_a():\n    assert a\n",
    ),
    (
        "a.test.ts",
        "it('adds', () => { expect(add(1, 2)).toBe(3) })\n",
        "it('adds two', () => { expect(add(1, 2)).toBe(3) })\n",
    ),
    (
        "src/commit.ts",
        "commit('a', 1)\nexpect(1)\n",
        "commit('b', 1)\n",
    ),
    ("README.md", "# test\n", "# spec\n"),
];

#[test]
fn weaker_tests_are_noticed() {
    for (path, before, after) in WEAKER {
        assert!(
            !notes(path, before, after).is_empty(),
            "{path}\n{before}\n=>\n{after}"
        );
        assert!(notes(path, before, before).is_empty(), "{path}\n{before}");
    }
}

#[test]
fn ordinary_work_is_not() {
    for (path, before, after) in FINE {
        let notes = notes(path, before, after);
        assert!(notes.is_empty(), "{notes:?}\n{path}\n{before}\n=>\n{after}");
    }
}

#[test]
fn a_deleted_test_file_is_noticed_and_a_moved_one_is_not() {
    let text = "def test_a():\n    assert f() == 1\n";
    let gone = file("tests/test_a.py", Some(text), None);
    assert_eq!(
        tampering(std::slice::from_ref(&gone), &[]),
        ["tests/test_a.py: the test file was deleted"]
    );
    let moved = file("tests/unit/test_a.py", None, Some(text));
    assert!(tampering(&[gone.clone(), moved], &[]).is_empty());
    let merged = file(
        "tests/test_b.py",
        Some("def test_b():\n    assert g()\n"),
        Some(&format!("def test_b():\n    assert g()\n{text}")),
    );
    assert!(tampering(&[gone.clone(), merged], &[]).is_empty());
    let hidden = file("tests/a.py.bak", None, Some(text));
    assert!(!tampering(&[gone, hidden], &[]).is_empty());
    assert!(
        tampering(&[file("tests/data/a.json", Some("{}"), None)], &[]).is_empty(),
        "no test"
    );
    assert!(!tampering(&[file("test.sh", Some("make check\n"), None)], &[]).is_empty());
    assert!(
        tampering(
            &[file(
                "tests/new_test.py",
                None,
                Some("@pytest.mark.skip\ndef test_n():\n    pass\n")
            )],
            &[]
        )
        .is_empty()
    );
}

#[test]
fn what_a_loop_runs_is_watched() {
    assert!(by_command(
        "./check.sh --fast",
        "check.sh",
        "false\n",
        "true\n"
    ));
    assert!(by_command(
        "CI=1 timeout 60 bash scripts/check.sh",
        "scripts/check.sh",
        "false\n",
        "true\n"
    ));
    assert!(by_command(
        "cd web; sh -c 'scripts/a && python3 tools/lint.py'",
        "tools/lint.py",
        "a\n",
        "b\n"
    ));
    assert!(!by_command(
        "grep -q good state",
        "state",
        "bad\n",
        "good\n"
    ));
    assert!(!by_command(
        "pytest tests/test_a.py",
        "tests/test_a.py",
        "def test_a():\n    assert f(1)\n",
        "def test_a():\n    assert f(2)\n"
    ));
    let package = |test: &str, version: &str| {
        format!(
            "{{\"version\": \"{version}\", \"scripts\": {{\"test\": \"{test}\", \"x\": \"{version}\"}}}}"
        )
    };
    assert!(by_command(
        "npm test",
        "package.json",
        &package("jest", "1"),
        &package("true", "1")
    ));
    assert!(by_command(
        "npm run -s test",
        "package.json",
        &package("jest", "1"),
        "{}"
    ));
    assert!(!by_command(
        "npm test",
        "package.json",
        &package("jest", "1"),
        &package("jest", "2")
    ));
    let makefile = |test: &str, other: &str| {
        format!("all:\n\t{other}\n\ntest: all\n\t{test}\n\nclean:\n\trm\n")
    };
    assert!(by_command(
        "make -s test",
        "Makefile",
        &makefile("pytest", "cc"),
        &makefile("true", "cc")
    ));
    assert!(!by_command(
        "make -s test",
        "Makefile",
        &makefile("pytest", "cc"),
        &makefile("pytest", "gcc")
    ));
    assert!(by_command(
        "python -m pytest -q",
        "pytest.ini",
        "[pytest]\n",
        "[pytest]\naddopts = --co\n"
    ));
    let project = |deps: &str, options: &str| {
        format!("[project]\ndependencies = [{deps}]\n[tool.pytest.ini_options]\n{options}\n")
    };
    assert!(by_command(
        "uv run pytest",
        "pyproject.toml",
        &project("", "a = 1"),
        &project("", "a = 2")
    ));
    assert!(!by_command(
        "uv run pytest",
        "pyproject.toml",
        &project("", "a = 1"),
        &project("'b'", "a = 1")
    ));
    assert!(by_command("true", ".github/workflows/ci.yml", "a\n", "b\n"));
    assert!(by_command(
        "true",
        ".ultraplan/recover.toml",
        "[[feedback]]\nname = 'a'\n",
        "[retry]\n"
    ));
    assert!(!by_command(
        "true",
        ".ultraplan/recover.toml",
        "[retry]\na = 1\n",
        "[retry]\na = 2\n"
    ));
    let new = file(".github/workflows/ci.yml", None, Some("a\n"));
    assert!(
        tampering(&[new], &[]).is_empty(),
        "what is new weakens nothing"
    );
}

#[test]
fn notes_are_bounded() {
    let gone = |n: usize| {
        file(
            &format!("tests/test_{n}.py"),
            Some(&format!("def test_{n}(): pass\n")),
            None,
        )
    };
    let notes = tampering(&(0..50).map(gone).collect::<Vec<_>>(), &[]);
    assert_eq!(
        (notes.len(), notes.last().unwrap().as_str()),
        (10, "and 41 more")
    );
}

proptest! {
    /// Whatever the text, nothing panics; what did not change says nothing; and adding never weakens.
    #[test]
    fn adding_tests_never_weakens(names in prop::collection::btree_set("[a-z]{1,4}", 0..6), more in prop::collection::btree_set("[a-z]{1,4}", 0..6), noise in "\\PC{0,80}") {
        let text = |names: &std::collections::BTreeSet<String>| {
            let tests: Vec<String> = names.iter().map(|name| format!("def test_{name}():\n    assert {name}\n")).collect();
            tests.join("\n")
        };
        let all = names.union(&more).cloned().collect();
        prop_assert!(notes("tests/test_a.py", &text(&names), &text(&all)).is_empty());
        let _ = tampering(&[file("a.test.js", Some(&noise), None)], &[Loop { name: "x", command: &noise, dir: "" }]);
        prop_assert!(notes("tests/test_a.py", &noise, &noise).is_empty());
    }
}

#[test]
fn a_script_of_a_folder_is_known_by_the_name_it_has_there() {
    let tampered = |path: &str, dir| {
        let loops = [Loop {
            name: "test",
            command: "./check.sh",
            dir,
        }];
        !tampering(&[file(path, Some("exit 1"), Some("exit 0"))], &loops).is_empty()
    };
    assert!(tampered("sub/check.sh", "sub") && tampered("check.sh", ""));
    assert!(!tampered("sub/check.sh", "") && !tampered("subs/check.sh", "sub"));
}

#[test]
fn notes_are_told_in_two_words() {
    for (note, words) in [
        ("tests/a: b.py: the test file was deleted", "tests removed"),
        ("a.rs: 2 tests fewer", "tests removed"),
        ("a.rs: 1 skip mark more", "tests skipped"),
        ("a.rs: only some of its tests are run", "tests skipped"),
        ("a.rs: 3 of 4 assertions are gone", "assertions removed"),
        ("ci.yml: the CI configuration was changed", "checks changed"),
    ] {
        assert_eq!(
            in_short(&[note.to_owned(), "and 3 more".to_owned()]),
            [words],
            "{note}"
        );
    }
}

#[test]
fn every_pattern_compiles() {
    for pattern in PATTERNS.iter().flatten() {
        assert!(pattern.compiles(), "{pattern:?}");
    }
}

#[test]
fn tests_are_known_by_their_path() {
    for path in [
        "tests/a.rs",
        "src/test_a.py",
        "a_test.go",
        "web/login.test.tsx",
        "web/__tests__/a.js",
        "spec/a_spec.rb",
        "src/test/java/A.java",
        "src/LoginTest.kt",
        "Shop.Tests/Cart.cs",
        "test.sh",
        "conftest.py",
        "e2e/a.ts",
    ] {
        assert!(is_test_path(path), "{path}");
    }
    for path in [
        "src/latest.rs",
        "src/main.rs",
        "contest.py",
        "src/EDIT.java",
        "src/testing_ground.md",
        "Latest.kt",
    ] {
        assert!(!is_test_path(path), "{path}");
    }
}
