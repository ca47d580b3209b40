//! Which tool calls of an agent trigger a checkpoint first (S10).
//!
//! Rules as data: one too many costs a scan of the work tree, one too few a chance to go back.

mod json_text;
pub(crate) mod plugin;
pub(crate) mod settings;

use std::sync::LazyLock;

use super::patterns::Patterns;
use crate::model::checkpoint::trigger;
use crate::model::hook::ToolCall;

/// What a tool call is to the work tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolCallRisk {
    /// It may destroy work.
    Risky,
    /// Its effect is outside the work tree.
    External,
    /// It modifies files.
    Edit,
    /// It runs something of which nothing is known.
    Operation,
    /// It only looks.
    Nothing,
}

impl ToolCallRisk {
    /// Why a checkpoint is taken before it; `None` where one is taken only if it is due.
    pub fn trigger(self) -> Option<&'static str> {
        match self {
            Self::Risky => Some(trigger::RISKY),
            Self::External => Some(trigger::EXTERNAL),
            Self::Edit => Some(trigger::BEFORE_EDIT),
            Self::Operation | Self::Nothing => None,
        }
    }
}

/// Commands that may destroy work.
const RISKY: &[&str] = &[
    r"\brm\s+(?:\S+\s+)*(?:-\w*[rRf]|--recursive|--force)",
    r"\bgit\s(?:.*\s)?(?:reset\s(?:.*\s)?--(?:hard|merge|keep)|clean\b|rebase\b|restore\b|filter-branch\b|filter-repo\b)",
    r"\bgit\s(?:.*\s)?(?:checkout|switch)\s(?:.*\s)?(?:-f\b|--force\b|--discard-changes\b|--\s|\.(?:[\s'\x22;&|)]|$))",
    r"\bgit\s(?:.*\s)?(?:stash\s+(?:push|drop|clear|pop|save|-)|stash\s*(?:$|['\x22;&|)])|branch\s(?:.*\s)?-D\b|worktree\s+remove\b|(?:update-ref|reflog|tag)\s(?:.*\s)?-d\b|gc\b|am\b|merge\b|pull\b|cherry-pick\b|revert\b|read-tree\b)",
    r"\bgit\s(?:.*\s)?push\s(?:.*\s)?(?:-f\b|--force|--delete\b|-d\b|--mirror\b|--prune\b|\+\S|:\S)",
    r"\bfind\s.*\s-(?:delete\b|exec(?:dir)?\s+(?:rm|mv|shred|truncate)\b)",
    r"\bxargs\s(?:.*\s)?(?:rm|mv|shred|truncate)\b",
    r"\b(?:shred|wipefs|mkfs(?:\.\w+)?|fdisk|parted|unlink|rmdir)\s|\bdd\s(?:.*\s)?of=|\btruncate\s+-",
    r"\b(?:rimraf|del-cli|trash|trash-put)\s|(?i:\b(?:remove-item|clear-content)\s)",
    r"\b(?:rmtree|remove_dir_all|removedirs|(?:rm|rmdir|unlink|remove|emptyDir)Sync|FileUtils\.(?:rm|remove)\w*|remove_tree|(?:os|fs|promises|File)\.(?:remove|unlink|rm|rmdir|delete))\s*[(! ]|\.unlink\s*\(",
    r"\brsync\s(?:.*\s)?--(?:delete|remove-source-files)",
    r"\b(?:chmod|chown|chgrp)\s(?:.*\s)?-\w*R",
    r"(?i)\bdrop\s+(?:table|database|schema|view|index|column|keyspace|collection)\b|\btruncate\s+(?:table\s+)?\w+\s*(?:;|cascade|\x22|'|$)|\bdelete\s+from\s|\bflush(?:all|db)\b|\bdropdatabase\s*\(|\balter\s+table\s.*\sdrop\s",
    r"\bdropdb\b|\b(?:db|database):(?:drop|reset|rollback|schema:load)|\bmigrat\w*[\s:]+(?:reset|fresh|down|rollback|zero|undo)|\b(?:alembic|knex|flyway|liquibase)\s(?:.*\s)?(?:downgrade|rollback|clean|drop-all)|\bprisma\s(?:.*\s)?(?:reset|push\s.*--(?:force-reset|accept-data-loss))",
    r"\b(?:terraform|tofu|terragrunt|pulumi|cdk|cdktf|sst|serverless|sls|vagrant|copilot)\s(?:.*\s)?(?:destroy|remove|delete)\b|\b(?:terraform|tofu)\s(?:.*\s)?state\s+(?:rm|mv|push)\b",
    r"\bkubectl\s(?:.*\s)?(?:delete|drain|replace\s(?:.*\s)?--force)\b|\bhelm\s(?:.*\s)?(?:uninstall|delete|rollback)\b",
    r"\b(?:docker|podman)\s(?:.*\s)?(?:prune\b|rmi\b|rm\b|down\s(?:.*\s)?(?:-v\b|--volumes\b))",
    r"\b(?:aws|gcloud|az|doctl|heroku|fly|flyctl|vercel|netlify|wrangler|supabase|firebase|gsutil)\s(?:.*\s)?(?:delete\S*|destroy\S*|terminate\S*|remove\S*|rm|rb|purge\S*|reset)\b",
    r"\bgh\s(?:.*\s)?(?:repo|release|secret|workflow|cache)\s+(?:delete|disable)\b|\bnpm\s+(?:unpublish|deprecate)\b|\bcargo\s+yank\b",
    r"\b(?:npm|pnpm|yarn|bun)\s(?:.*\s)?(?:audit\s+fix|dedupe|prune)\b|\b(?:make|cargo|gradle|gradlew|mvn|ninja)\s(?:.*\s)?(?:clean|distclean|mrproper)\b",
];

/// Commands whose effect is outside the work tree.
const EXTERNAL: &[&str] = &[
    r"\bgit\s(?:.*\s)?(?:push|send-email|request-pull)\b",
    r"\b(?:gh|glab|hub|tea)\s(?:.*\s)?(?:create|merge|close|edit|comment|review|upload|run|dispatch|api|rerun)\b",
    r"\b(?:npm|pnpm|yarn|bun|cargo|poetry|uv|flit|hatch|gem|lerna|changeset|vsce)\s(?:.*\s)?(?:publish|push)\b|\btwine\s+upload\b|\bgoreleaser\b",
    r"\b(?:docker|podman|buildah|skopeo)\s(?:.*\s)?(?:push|copy)\b",
    r"\bcurl\s(?:.*\s)?(?:-X\s*(?:POST|PUT|PATCH|DELETE)|--request[ =](?:POST|PUT|PATCH|DELETE)|-d\b|--data|-F\b|--form|-T\b|--upload-file|--json)",
    r"\bwget\s(?:.*\s)?--(?:post|method|body)|\bhttps?\s+(?:POST|PUT|PATCH|DELETE)\b",
    r"\b(?:ssh|scp|sftp|ftp|telnet|mosh)\s|\brsync\s(?:.*\s)?\S+:\S",
    r"\b(?:kubectl|oc)\s(?:.*\s)?(?:apply|create|edit|patch|scale|rollout|set|label|annotate|exec|cp|replace|run)\b|\bhelm\s(?:.*\s)?(?:install|upgrade|push)\b",
    r"\b(?:terraform|tofu|terragrunt|pulumi|cdk|cdktf|sst|serverless|sls)\s(?:.*\s)?(?:apply|up|deploy|import)\b|\bansible(?:-playbook)?\s",
    r"\b(?:aws|gcloud|az|gsutil|bq|doctl|heroku|fly|flyctl|vercel|netlify|wrangler|supabase|firebase|railway|render|cap|fastlane)\s",
    r"\b(?:psql|mysql|mariadb|sqlite3|mongosh|mongo|redis-cli|cqlsh|sqlcmd|clickhouse-client|duckdb)\s",
    r"\b(?:alembic|flyway|liquibase|knex|sqlx|diesel|goose|dbmate)\s(?:.*\s)?(?:upgrade|migrate\S*|run|up|update)\b|\b(?:rails|rake|artisan|manage\.py|mix|prisma|typeorm|sequelize)\s(?:.*\s)?(?:db:)?migrat",
    r"\b(?:mail|mailx|sendmail|mutt|msmtp)\s",
];

/// Commands that write files.
const EDITS: &[&str] = &[
    r"\b(?:sed|perl|ruby|gawk|awk)\s(?:.*\s)?(?:-\w*i\b|-i\S*|--in-place)",
    r"\b(?:apply_patch|patch|rm|mv|cp|install|tee|ln|unzip|tar|touch)\s",
    r"\bgit\s(?:.*\s)?(?:apply|mv|rm|checkout|switch|stash|submodule)\b",
    r"(?:^|[^0-9&<>=-])>{1,2}\s*[^\s&>/]|(?:^|[^0-9&<>=-])>{1,2}\s*/(?:[^d]|d[^e])",
    r"\b(?:prettier|eslint|biome|ruff|black|isort|gofmt|goimports|rustfmt|clang-format|shfmt|rubocop|stylelint|dprint)\s(?:.*\s)?(?:--write|--fix|-w\b|format\b|-i\b|-a\b|-A\b|\.)",
    r"\b(?:cargo|npm|pnpm|yarn|bun|npx|go|poetry|uv|composer|bundle|dotnet|dart|flutter|mix)\s(?:.*\s)?(?:fmt|fix|add|remove|install|update|upgrade|init|new|get|generate|codegen|lock|tidy)\b",
];

struct Rules {
    patterns: Patterns,
    occasions: Vec<ToolCallRisk>,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let lists = [
        (RISKY, ToolCallRisk::Risky),
        (EXTERNAL, ToolCallRisk::External),
        (EDITS, ToolCallRisk::Edit),
    ];
    let all = || {
        lists
            .iter()
            .flat_map(|(list, occasion)| list.iter().map(|pattern| (*pattern, *occasion)))
    };
    Rules {
        patterns: Patterns::new(all().map(|(pattern, _)| pattern)),
        occasions: all().map(|(_, occasion)| occasion).collect(),
    }
});

/// What a tool call is. The worst of a command's lines counts.
pub fn occasion(call: &ToolCall) -> ToolCallRisk {
    let name = call.name.to_ascii_lowercase();
    // In the words of all agents.
    let by_name = match name.as_str() {
        "edit" | "write" | "multiedit" | "notebookedit" | "apply_patch" | "patch"
        | "write_file" | "replace" | "edit_file" | "create_file" | "str_replace_editor" => {
            return ToolCallRisk::Edit;
        }
        "bash" | "shell" | "local_shell" | "shell_command" | "exec_command" | "unified_exec"
        | "run_shell_command" | "run_terminal_cmd" | "powershell" => ToolCallRisk::Operation,
        // What a server of tools does is its own affair.
        name if name.starts_with("mcp_") => ToolCallRisk::External,
        _ => ToolCallRisk::Nothing,
    };
    call.command.as_deref().map_or(by_name, of_command)
}

fn of_command(command: &str) -> ToolCallRisk {
    let joined = command.replace("\\\n", " ");
    let mut found = ToolCallRisk::Operation;
    for line in joined.lines() {
        // The lists are in the order of what is worse.
        let first = RULES.patterns.matches(line.as_bytes()).first().copied();
        match first.map(|number| RULES.occasions[usize::from(number)]) {
            Some(ToolCallRisk::Risky) => return ToolCallRisk::Risky,
            Some(ToolCallRisk::External) => found = ToolCallRisk::External,
            Some(other) if found == ToolCallRisk::Operation => found = other,
            _ => {}
        }
    }
    found
}

/// All patterns.
#[cfg(test)]
pub(super) fn patterns() -> Vec<&'static str> {
    [RISKY, EXTERNAL, EDITS].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> ToolCallRisk {
        occasion(&ToolCall {
            name: "Bash".into(),
            command: Some(command.into()),
            path: None,
        })
    }

    #[test]
    fn every_pattern_compiles_and_is_found_where_it_matches() {
        for pattern in patterns() {
            assert!(
                regex::bytes::RegexBuilder::new(pattern)
                    .unicode(false)
                    .build()
                    .is_ok(),
                "{pattern}"
            );
        }
        crate::policy::patterns::tests::nothing_is_missed(&patterns());
    }

    #[test]
    fn what_may_destroy_work_is_risky() {
        for command in [
            "rm -rf build",
            "cd a && rm -r b",
            "rm --force x",
            "git reset --hard HEAD~1",
            "git -C sub reset --hard",
            "git clean -fdx",
            "git checkout -- .",
            "git checkout .",
            "git stash",
            "git push --force origin main",
            "git push -f",
            "git push origin +main",
            "git rebase main",
            "psql -c 'DROP TABLE users'",
            "mysql -e \"delete from a\"",
            "terraform destroy -auto-approve",
            "terraform -chdir=infra destroy",
            "kubectl delete pod x",
            "docker compose down -v",
            "find . -name '*.o' -delete",
            "ls | xargs rm",
            "rails db:drop",
            "redis-cli FLUSHALL",
            "echo a\nrm -rf b",
            "dd if=/dev/zero of=disk.img",
            "make clean",
            "npx rimraf dist",
            "python3 -c \"import shutil; shutil.rmtree('src')\"",
            "python - <<'EOF'\nimport os\nos.remove('a')\nEOF",
            "node -e \"require('fs').rmSync('src', {recursive: true})\"",
            "ruby -e 'FileUtils.rm_rf \"src\"'",
            "pwsh -c 'Remove-Item src -Recurse'",
            "git restore --staged --worktree src",
            "git checkout HEAD~2 -- src",
            "bash -c \"git checkout .\"",
            "sh -c 'bash -c \"rm -rf src\"'",
            "(git stash)",
            "git ls-files | xargs -0 rm",
        ] {
            assert_eq!(of(command), ToolCallRisk::Risky, "{command}");
        }
    }

    #[test]
    fn calls_and_edits_are_told_from_looks() {
        for command in [
            "git push",
            "gh pr create",
            "npm publish",
            "curl -X POST http://x",
            "kubectl apply -f a.yml",
        ] {
            assert_eq!(of(command), ToolCallRisk::External, "{command}");
        }
        for command in [
            "apply_patch <<'EOF'\n*** Begin Patch",
            "sed -i s/a/b/ f",
            "echo x > f",
            "cat a >> b",
            "mv a b",
            "cargo fmt",
            "prettier --write .",
        ] {
            assert_eq!(of(command), ToolCallRisk::Edit, "{command}");
        }
        for command in [
            "ls -la",
            "cargo test 2>&1",
            "grep -rn x src",
            "git status",
            "git log",
            "make 2>/dev/null",
            "a => b",
            "grep -n remove src/fs.rs",
            "cargo test rm_keeps",
        ] {
            assert_eq!(of(command), ToolCallRisk::Operation, "{command}");
        }
        let tool = |name: &str| {
            occasion(&ToolCall {
                name: name.into(),
                ..ToolCall::default()
            })
        };
        for name in [
            "Edit",
            "Write",
            "MultiEdit",
            "NotebookEdit",
            "apply_patch",
            "write_file",
            "replace",
            "edit",
        ] {
            assert_eq!(tool(name), ToolCallRisk::Edit, "{name}");
        }
        assert_eq!(tool("mcp__db__query"), ToolCallRisk::External);
        assert_eq!(
            (tool("Read"), tool("Grep"), tool("Bash")),
            (
                ToolCallRisk::Nothing,
                ToolCallRisk::Nothing,
                ToolCallRisk::Operation
            )
        );
        // Codex's own editor puts its patch where others put a command.
        let patch = ToolCall {
            name: "apply_patch".into(),
            command: Some("*** Begin Patch\nrm -rf".into()),
            path: None,
        };
        assert_eq!(occasion(&patch), ToolCallRisk::Edit);
    }
}
