recover runs

recover run --run monday --on-failure stop -- sh -c 'echo monday > a.txt; exit 3'

recover run --run tuesday -- sh -c 'echo tuesday > a.txt'

recover runs

recover --json runs --limit 1

recover manual-fix start --run monday

recover checkpoint create -m "By hand"

recover --json close monday --dry-run

recover close monday tuesday

recover close monday

recover runs

recover runs --all

recover close no-such-run

recover rollback --to good --dry-run

recover forget monday

recover forget monday --dry-run

recover --json forget monday --yes

recover forget --all --dry-run

recover forget --all --yes

recover runs
