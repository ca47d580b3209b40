#!/bin/sh
# Installs recover into a dev container while that is built, as root; FROM is the feature's option.
set -eu
cd "$(dirname "$0")"
case ${FROM:-https} in
    http*)
        if ! command -v curl > /dev/null && ! command -v wget > /dev/null && command -v apt-get > /dev/null; then
            apt-get update -qq
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ca-certificates curl
        fi
        ;;
esac
sh ./recover-install.sh --prefix /usr/local ${FROM:+--from "$FROM"}
