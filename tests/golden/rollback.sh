echo two > a.txt; echo new > b.txt
recover --json checkpoint create -m "Two files"

recover checkpoint create --if-changed

recover --json checkpoint create --if-changed

rm b.txt; echo three > a.txt; mkdir -p deep/er; echo x > deep/er/file
recover checkpoint create -m "Three"

recover checkpoint list

recover --json checkpoint show latest

recover checkpoint show @1 --patch

recover checkpoint diff @1 @2

recover --json checkpoint diff @1

recover rollback --iteration 9

recover rollback --to bogus

recover --json rollback --to @99

recover --dry-run rollback --to @1

recover --json --dry-run rollback --to @1

recover rollback --to @1

cat a.txt; ls

recover rollback --to @1

recover undo

recover --json undo

recover redo

recover --json redo

echo by hand > a.txt
recover rollback --to @1

recover --json rollback --to @1

recover --json rollback --to @1 --edits discard

recover rollback --to @1 --path 'deep/**'

recover checkpoint restore @2 --path 'deep/**'

recover checkpoint pin @1 --note "Keep this"

recover checkpoint unpin @1

recover checkpoint verify

recover --json checkpoint verify

recover checkpoint prune --keep-last 1

recover --json --dry-run checkpoint prune --keep-last 1

recover --json --yes checkpoint prune --keep-last 1

recover checkpoint list

recover checkpoint export latest --patch ../state.patch

recover --json checkpoint export latest --bundle ../state.bundle

recover log
