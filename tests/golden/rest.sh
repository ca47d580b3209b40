recover

recover --version

recover no-such-command

recover init

recover --json init

recover config

recover --json config --origins

recover classify --message "429 Too Many Requests" --loop agent

recover --json classify --message "error[E0308]: mismatched types" --loop build --exit-code 101 --explain

recover --json classify --log no-such-file

recover --json hook print claude

recover hook install claude --dry-run

recover hook install claude

recover --json hook install claude

echo '{"hook_event_name":"PreToolUse","session_id":"1","tool_name":"Bash","tool_input":{"command":"rm -rf ."}}' | recover hook run claude

recover checkpoint list --run claude-1

recover hook uninstall claude

echo '{' > .ultraplan/recover.toml
recover status

recover --json retry-status

printf '[retry]\nmax_atempts = 3\n' > .ultraplan/recover.toml
recover --json retry-status

rm .ultraplan/recover.toml
cd / && recover --json checkpoint create

cd "$HOME" && recover checkpoint create

recover --state-dir /dev/null/x checkpoint create

recover schema retry-status

recover run --help

recover rollback --help
