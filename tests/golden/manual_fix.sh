printf '#!/bin/sh\ngrep -sqx works app.txt || { echo "FAILED app: it does not work"; exit 1; }\n' > check.sh
chmod +x check.sh; echo works > app.txt; git add . && git commit -qm tools

recover manual-fix start

recover --json run --run fixed --on-failure manual-fix --feedback test=./check.sh -- sh -c 'echo broken > app.txt'

recover manual-fix status

recover --json manual-fix start

recover manual-fix verify

recover manual-fix continue

recover --json manual-fix continue

recover --json resume

recover --json manual-fix verify

echo works > app.txt
recover --json manual-fix status

recover manual-fix verify

recover --json manual-fix continue

recover status

recover --json manual-fix abort
