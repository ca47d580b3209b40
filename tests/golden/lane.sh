recover checkpoint create --run night --lane SL-1 --stage before_lane_start --status ready

recover --json step build --run night --lane SL-1 --stage after_lane_start -- sh -c 'echo built > built.txt'

recover step test --run night --lane SL-1 --stage after_lane_tests -- sh -c 'echo "2 tests failed"; exit 3'

recover step build --run night --lane SL-1 --stage after_lane_start -- false

recover --resume --run night --lane SL-1

recover --json --resume --run night --lane SL-1

recover --json --dry-run --rollback --run night --lane SL-1 --edits discard

recover --rollback --run night --lane SL-1 --edits discard

cat .ultraplan/state/checkpoints.json

recover --json step rename --atomic --intent "Rename" --run night --lane SL-1 -- sh -c 'echo half > a.txt; exit 7'

cat a.txt

recover --json sync

recover sync --to ../views

recover --json --dry-run import ../views

recover import ../views/no-such-file
