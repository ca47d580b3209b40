recover retry-status

recover --json status

export RECOVER_RUN_ID=loop
mkdir -p .ultraplan/state; echo 1 > .ultraplan/state/plan.json
recover --json attempt start --approach "Use a pattern" --subtask parse

export RECOVER_RUN_ID=loop
echo one >> a.txt; echo 2 > .ultraplan/state/plan.json
recover attempt pass -m "The first step"

export RECOVER_RUN_ID=loop
echo 3 > .ultraplan/state/plan.json
recover --json attempt fail --message "error: could not compile foo" --exit-code 101 --loop build

cat .ultraplan/state/plan.json .ultraplan/state/recovery.json

recover --run loop attempt fail --message "Tests failed" --exit-code 1 --loop test --check

recover --run loop --json retry-status --check

recover --run loop retry-status --reset

recover --run loop --json retry-status --reset

recover --run loop attempt list

recover --run loop --json attempt list

recover --run loop report

recover --run loop status

recover --run other status

recover --json --run other retry-status
