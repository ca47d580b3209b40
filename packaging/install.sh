#!/bin/sh
# Installs recover @VERSION@, or removes it, without a compiler and without root.
#
#     sh install.sh [--prefix DIR] [--from URL|DIR] [--uninstall]
#
# The archive of this system comes from --from (@RELEASES@). Nothing of it is unpacked unless it
# has the SHA-256 checksum that this file names; what is refused leaves nothing behind. The prefix is ~/.local.
set -eu

version='@VERSION@'
sums='@SUMS@'

fail() {
    printf 'install.sh: %s\n' "$1" >&2
    [ $# -eq 1 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

# The target that this system's archive is named by.
target() {
    case $(uname -s) in
        Linux) system=unknown-linux-musl ;;
        Darwin) system=apple-darwin ;;
        *) fail "there is no archive for $(uname -s)" 'on Windows, use it within WSL; elsewhere, build it: cargo install --locked --path .' ;;
    esac
    case $(uname -m) in
        x86_64 | amd64) echo "x86_64-$system" ;;
        aarch64 | arm64) echo "aarch64-$system" ;;
        *) fail "there is no archive for $(uname -m)" 'build it: cargo install --locked --path .' ;;
    esac
}

fetch() {
    case $1 in
        http://* | https://*)
            if command -v curl > /dev/null; then
                curl --fail --silent --show-error --location --output "$2" "$1"
            elif command -v wget > /dev/null; then
                wget --quiet --output-document "$2" "$1"
            else
                fail 'curl or wget is needed' "download $1, and name its folder with --from"
            fi
            ;;
        *) cp "${1#file://}" "$2" ;;
    esac || fail "$1 could not be fetched" 'a folder with the archive can be named with --from'
}

sha256() {
    if command -v sha256sum > /dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# The places below the prefix of an unpacked archive's files, one a line after its source.
places() {
    echo 'recover bin/recover'
    for page in man/*; do echo "$page share/man/man${page##*.}/${page#man/}"; done
    echo 'completions/recover.bash share/bash-completion/completions/recover'
    echo 'completions/_recover share/zsh/site-functions/_recover'
    echo 'completions/recover.fish share/fish/vendor_completions.d/recover.fish'
}

remove() {
    [ -e "$prefix/bin/recover" ] || fail "there is no recover in $prefix/bin"
    cd "$prefix"
    for file in bin/recover share/man/man[157]/recover.[1-7] share/man/man[157]/recover.toml.5 \
        share/man/man[157]/recover-*.[1-7] share/bash-completion/completions/recover \
        share/zsh/site-functions/_recover share/fish/vendor_completions.d/recover.fish; do
        [ ! -e "$file" ] || rm "$file"
    done
    # Folders that nothing else is in.
    for folder in share/man/man1 share/man/man5 share/man/man7 share/man share/bash-completion/completions \
        share/bash-completion share/zsh/site-functions share/zsh share/fish/vendor_completions.d share/fish share bin; do
        rmdir "$folder" 2> /dev/null || :
    done
    echo "recover is removed from $prefix"
}

install() {
    name=recover-$version-$(target)
    expected=$(printf '%s\n' "$sums" | sed -n "s/  $name\.tar\.gz\$//p")
    [ -n "$expected" ] || fail "there is no archive $name" 'build it: cargo install --locked --path .'
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    fetch "$from/$name.tar.gz" "$work/archive"
    found=$(sha256 "$work/archive")
    [ "$found" = "$expected" ] || fail "$name.tar.gz has the checksum $found, not $expected: nothing was installed"
    tar -xzf "$work/archive" -C "$work"
    mkdir -p "$prefix"
    prefix=$(cd "$prefix" && pwd)
    cd "$work/$name"
    ./recover --version > /dev/null || fail 'the program does not run here: nothing was installed'
    places | while read -r source place; do
        mkdir -p "$prefix/${place%/*}"
        # Renamed, since it may be running.
        cp "$source" "$prefix/$place.new"
        mv "$prefix/$place.new" "$prefix/$place"
    done
    echo "recover $version is in $prefix/bin"
    case :$PATH: in
        *":$prefix/bin:"*) ;;
        *) echo "hint: put $prefix/bin on PATH" ;;
    esac
}

main() {
    prefix=${HOME:-}/.local
    from=@RELEASES@
    action=install
    while [ $# -gt 0 ]; do
        case $1 in
            --prefix | --from)
                [ $# -ge 2 ] || fail "$1 needs a value"
                if [ "$1" = --prefix ]; then prefix=$2; else from=${2%/}; fi
                shift
                ;;
            --uninstall) action=remove ;;
            *) fail "unknown argument $1" 'sh install.sh [--prefix DIR] [--from URL|DIR] [--uninstall]' ;;
        esac
        shift
    done
    $action
}

# Last, so that a part of this file does nothing.
main "$@"
