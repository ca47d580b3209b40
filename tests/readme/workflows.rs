//! Workflows and the action are YAML that parses, with scripts that parse; the README's is run step by step.

use std::io::Write as _;
use std::process::Stdio;

use saphyr::{LoadableYamlNode as _, YamlOwned};

use crate::{Command, blocks, fs, project, root, text};

fn parsed(name: &str, yaml: &str) -> YamlOwned {
    let documents = YamlOwned::load_from_str(yaml);
    let mut documents = documents.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(documents.len(), 1, "{name}");
    documents.remove(0)
}

/// Every file with steps in it, and every workflow that a page shows.
fn all() -> Vec<(String, YamlOwned)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(".github/workflows")).expect("workflows") {
        let name = entry.expect("a file").file_name();
        found.push(format!(".github/workflows/{}", name.to_string_lossy()));
    }
    found.push("packaging/action/action.yml".to_owned());
    let mut found: Vec<(String, YamlOwned)> = found
        .into_iter()
        .map(|name| (name.clone(), parsed(&name, &text(&name))))
        .collect();
    for page in ["README.md", "src/cli/guide.md"] {
        for block in blocks(&text(page)) {
            if block.language == "yaml" && block.body.contains("jobs:\n") {
                found.push((page.to_owned(), parsed(page, &block.body)));
            }
        }
    }
    found
}

/// Every step, wherever it is in the document.
fn steps(node: &YamlOwned) -> Vec<&YamlOwned> {
    if let Some(list) = node.as_sequence() {
        return list.iter().flat_map(steps).collect();
    }
    let Some(map) = node.as_mapping() else {
        return Vec::new();
    };
    let own = node
        .as_mapping_get("steps")
        .and_then(YamlOwned::as_sequence);
    map.values()
        .flat_map(steps)
        .chain(own.into_iter().flatten())
        .collect()
}

fn get<'a>(node: &'a YamlOwned, key: &str) -> Option<&'a str> {
    node.as_mapping_get(key)?.as_str()
}

#[test]
fn every_step_of_a_workflow_is_a_script_of_bash_or_an_action() {
    let mut scripts = 0;
    for (name, workflow) in all() {
        let steps = steps(&workflow);
        assert!(!steps.is_empty(), "{name} has no step");
        for step in steps {
            let Some(script) = get(step, "run") else {
                assert!(get(step, "uses").is_some(), "{name}: {step:?}");
                continue;
            };
            // What others may have written reaches a script as a variable only.
            assert!(!script.contains("${{"), "{name}: {script}");
            let mut bash = Command::new("bash")
                .arg("-n")
                .stdin(Stdio::piped())
                .spawn()
                .expect("bash");
            let mut stdin = bash.stdin.take().expect("its input");
            stdin.write_all(script.as_bytes()).expect("written");
            drop(stdin);
            assert!(bash.wait().expect("its end").success(), "{name}: {script}");
            scripts += 1;
        }
    }
    assert!(scripts > 20, "{scripts} scripts");
}

#[test]
fn a_release_has_a_package_for_every_platform() {
    let release = text(".github/workflows/release.yml");
    let release = parsed("release.yml", &release);
    let matrix = &release["jobs"]["build"]["strategy"]["matrix"]["include"];
    let mut built: Vec<&str> = matrix
        .as_sequence()
        .expect("targets")
        .iter()
        .filter_map(|one| get(one, "target"))
        .collect();
    let packages = text("packaging/registries.py");
    let (_, platforms) = packages.split_once("PLATFORMS = {\n").expect("platforms");
    let (platforms, _) = platforms.split_once("\n}").expect("their end");
    let mut named: Vec<&str> = platforms
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split('"').next())
        .collect();
    built.sort_unstable();
    named.sort_unstable();
    assert_eq!(built, named);
}

/// The steps of the action that have a script, as a runner has them, with what the README's workflow gives.
#[test]
fn the_workflow_of_the_readme_works() {
    let (_, workflow) = all()
        .into_iter()
        .find(|(name, _)| name == "README.md")
        .expect("a workflow");
    let steps = steps(&workflow);
    let caller = steps.last().expect("a step with the action");
    assert!(
        get(caller, "uses").is_some_and(|uses| uses.contains("/packaging/action@v")),
        "{caller:?}"
    );
    let action = parsed("action.yml", &text("packaging/action/action.yml"));
    let given = caller["with"].as_mapping().expect("inputs");
    let inputs = action["inputs"].as_mapping().expect("inputs");
    for name in given.keys() {
        assert!(inputs.contains_key(name), "{name:?} is no input");
    }
    let mut env = project();
    let temp = env.root().join("temp");
    fs::create_dir(&temp).expect("a folder");
    let place = |name: &str| temp.join(name).to_string_lossy().into_owned();
    env.set("GITHUB_ACTIONS", "true")
        .set("GITHUB_ACTOR", "somebody")
        .set("GITHUB_STEP_SUMMARY", &place("summary.md"))
        .set("GITHUB_OUTPUT", &place("output"))
        .set("RUNNER_TEMP", &place("."))
        .set("CI", "true");
    let folder = root().join("packaging/action");
    env.set("GITHUB_ACTION_PATH", &folder.to_string_lossy());
    // What the job comes to outlives its machine.
    env.git(&["init", "-q", "--bare", "../origin.git"]);
    env.git(&["remote", "add", "origin", "../origin.git"]);
    let mut ran = Vec::new();
    for step in action["runs"]["steps"].as_sequence().expect("steps") {
        let Some(script) = get(step, "run") else {
            continue;
        };
        for (name, value) in step
            .as_mapping_get("env")
            .and_then(YamlOwned::as_mapping)
            .into_iter()
            .flatten()
        {
            let (name, value) = (
                name.as_str().expect("a name"),
                value.as_str().expect("a value"),
            );
            let input = value
                .strip_prefix("${{ inputs.")
                .and_then(|rest| rest.strip_suffix(" }}"));
            let value = input.map_or("", |input| {
                get(&caller["with"], input)
                    .or_else(|| get(&action["inputs"][input], "default"))
                    .expect("an input with a value")
            });
            env.set(name, value);
        }
        let result = env.sh(&format!("set -e\n{script}"));
        assert_eq!(
            result.code, 0,
            "{script}\n{}\n{}",
            result.stdout, result.stderr
        );
        ran.push(script.rsplit(' ').next().expect("a word").to_owned());
    }
    assert_eq!(ran, ["install", "restore", "run", "save", "push"]);
    assert_eq!(
        env.git(&["-C", "../origin.git", "show", "agent-work:task.txt"]),
        "done\n"
    );
    assert!(env.exists("../temp/recover-ci.html") && env.read("../temp/summary.md").contains("ci"));
}
