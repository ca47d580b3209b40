#!/bin/sh
# Tries every function of text.sh that is there on an example.
. ./text.sh
passed=0 failed=0
try() {
    grep -q "^$1()" text.sh || return 0
    got=$(printf '%s\n' "$2" | "$1" 2>&1)
    if [ "$got" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED test.sh::test_$1 - expected '$3', got '$got'"
    fi
}
try upper 'one two' 'ONE TWO'
try words 'one two three' '3'
try squeeze 'a   b' 'a b'
try lines 'one' '1'
try title 'one two' 'One Two'
try trim '  one  ' 'one'
echo "$failed failed, $passed passed"
[ "$failed" = 0 ]
