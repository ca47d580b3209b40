printf '#!/bin/sh\nif [ "$RECOVER_ATTEMPT" = 1 ]; then echo broken > app.txt; else echo works > app.txt; fi\n' > agent.sh
printf '#!/bin/sh\ngrep -sqx works app.txt || { echo "FAILED app: it does not work"; exit 1; }\n' > check.sh
chmod +x agent.sh check.sh
git add . && git commit -qm tools

recover run --dry-run -- ./agent.sh

recover run

recover --json run --run night --no-wait --iterations 2 --attempts 3 --feedback test=./check.sh --prompt "Make it work." -- ./agent.sh

recover status

recover --json status

recover retry-status

recover --json retry-status

recover retry-status --check

recover --json resume --strategy bogus

recover resume

@now 2030-01-01T12:01:00.000Z

recover resume --prepare-only --strategy retry_with_context --instructions "Leave the tests alone."

recover --json resume --dry-run --strategy rollback_and_retry

recover --json resume --strategy retry_with_context --no-input

recover status

recover checkpoint list

recover --json checkpoint list

recover --json resume

recover --json attempt list

recover log

recover report

recover --json config

recover doctor

recover --json doctor

recover run --run missing -- ./no-such-agent

recover status
