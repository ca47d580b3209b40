//! What a server answers where nothing is under test, and what a line says for itself where nobody built anything.

use super::{Case, check, evidence, now, short};
use crate::model::failure::FailureEvidence;
use crate::policy::classify::classify;

const CREDENTIALS: &[Case] = &[
    (
        'b',
        1,
        "npm error code E401\nnpm error 401 Unauthorized - GET https://registry.example/x",
        "s AUTH_FAILED",
    ),
    (
        't',
        1,
        "npm ERR! code E403\nnpm ERR! 403 403 Forbidden - PUT https://registry.example/x",
        "s AUTH_FAILED",
    ),
    (
        'b',
        22,
        "curl: (22) The requested URL returned error: 401",
        "s AUTH_FAILED",
    ),
    (
        'b',
        128,
        "fatal: unable to access 'https://git.example/a.git/': The requested URL returned error: 403",
        "s AUTH_FAILED",
    ),
    (
        'b',
        128,
        "fatal: Authentication failed for 'https://git.example/a.git/'",
        "s AUTH_FAILED",
    ),
    (
        'b',
        101,
        "error: failed to get `a` as a dependency\n\nCaused by:\n  failed to get successful HTTP response from `https://index.example/a` (127.0.0.1), got 403",
        "s AUTH_FAILED",
    ),
    (
        'b',
        1,
        "[ERROR] Failed to execute goal on project a: Could not transfer artifact g:a:pom:1 from/to central (https://repo.example): status code: 401, reason phrase: Unauthorized (401)",
        "s AUTH_FAILED",
    ),
    (
        'b',
        1,
        "Error response from daemon: Get \"https://r.example/v2/\": unauthorized: authentication required",
        "s AUTH_FAILED",
    ),
    (
        'b',
        1,
        "denied: requested access to the resource is denied",
        "s AUTH_FAILED",
    ),
    (
        'b',
        6,
        "Username/Password Authentication Failed.",
        "s AUTH_FAILED",
    ),
    (
        'b',
        8,
        "2026-11-24 03:35:22 ERROR 403: Forbidden.",
        "s AUTH_FAILED",
    ),
    (
        'b',
        1,
        "E: Failed to fetch http://deb.example/a.deb  401  Unauthorized [IP: 10.0.0.1 80]",
        "s AUTH_FAILED",
    ),
    (
        'b',
        1,
        "upload failed: a.zip to s3://b/a.zip Unable to locate credentials",
        "s AUTH_FAILED",
    ),
    (
        'b',
        1,
        "error: You must be logged in to the server (Unauthorized)",
        "s AUTH_FAILED",
    ),
    (
        'b',
        2,
        "psql: error: FATAL:  password authentication failed for user \"ci\"",
        "s AUTH_FAILED",
    ),
    (
        'b',
        1,
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    get()\nurllib.error.HTTPError: HTTP Error 403: Forbidden",
        "s AUTH_FAILED",
    ),
    (
        'b',
        1,
        "Error: Error refreshing state: HTTP remote state endpoint requires auth",
        "s AUTH_FAILED",
    ),
    (
        'b',
        255,
        "abort: http authorization required for http://r.example/a",
        "s AUTH_FAILED",
    ),
    (
        'b',
        1,
        "error: failed to download openapi: the server has asked for the client to provide credentials",
        "s AUTH_FAILED",
    ),
    (
        'b',
        1,
        "error Error: https://r.example/x: Request \"https://r.example/x\" returned a 403",
        "s AUTH_FAILED",
    ),
    (
        'b',
        101,
        "error: failed to get `a`\n\nCaused by:\n  authenticated registries require a credential-provider to be configured",
        "s AUTH_FAILED",
    ),
    // A server that is under test may answer what it likes, and so may a source.
    (
        't',
        1,
        "Error: HTTP 401 Unauthorized\n    at a.test.js:3:1\n1 failing",
        "f VERIFICATION_FAILED",
    ),
    (
        'b',
        1,
        "error[E0425]: cannot find value `x`\n  --> src/a.rs:1:1\nwarning: telemetry: 403 Forbidden",
        "f BROKEN_BUILD",
    ),
    (
        'b',
        1,
        "src/api.rs:403: error: unknown status 401",
        "f BROKEN_BUILD",
    ),
    (
        'b',
        1,
        "pull access denied for acme/x, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
        "f RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        1,
        "ModuleNotFoundError: No module named credentials",
        "f BROKEN_BUILD",
    ),
    (
        'b',
        1,
        "error: missing field auth in a.toml",
        "f BROKEN_BUILD",
    ),
    ('b', 1, "Found 403 errors in 12 files", "f BROKEN_BUILD"),
];

const SERVICES: &[Case] = &[
    (
        'b',
        8,
        "2026-11-24 03:35:22 ERROR 500: Internal Server Error.",
        "s NETWORK_ERROR+",
    ),
    (
        'b',
        1,
        "urllib.error.HTTPError: HTTP Error 503: Service Unavailable",
        "s NETWORK_ERROR+",
    ),
    (
        'b',
        1,
        "Received status code 502 from server: Bad Gateway",
        "s NETWORK_ERROR+",
    ),
    (
        't',
        1,
        "Error: expected 200, got 500\n1 failing",
        "f VERIFICATION_FAILED",
    ),
    // The settings of a request that is printed whole are no time limit.
    (
        't',
        1,
        "Error: boom\n  config: {\n    timeout: 0,\n    timeout: null\n  }\n1 failing",
        "f VERIFICATION_FAILED",
    ),
];

const TRUST: &[Case] = &[
    (
        'b',
        60,
        "curl: (60) SSL certificate problem: self-signed certificate",
        "s UNKNOWN",
    ),
    (
        'b',
        2,
        "error: Request failed after 3 retries\n  Caused by: error sending request for url (https://index.example/a)\n  Caused by: invalid peer certificate: UnknownIssuer",
        "s UNKNOWN",
    ),
    (
        'b',
        1,
        "npm error code SELF_SIGNED_CERT_IN_CHAIN",
        "s UNKNOWN",
    ),
    (
        'b',
        1,
        "Get \"https://r.example/v2/\": x509: certificate signed by unknown authority",
        "s UNKNOWN",
    ),
    (
        'b',
        35,
        "curl: (35) TLS connect error: unexpected eof while reading",
        "s NETWORK_ERROR+",
    ),
];

const OWN_WORDS: &[Case] = &[
    (
        'b',
        8,
        "Error: stepping, attempt to write a readonly database (8)",
        "s PERMISSION_DENIED",
    ),
    (
        'b',
        2,
        "tar: a: Wrote only 4608 of 10240 bytes\ntar: Exiting with failure status due to previous errors",
        "s DISK_FULL",
    ),
    (
        'b',
        1,
        "Error: Unable to access jarfile out/a.jar",
        "f RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        255,
        "ERROR [x.messaging] Can't locate revision identified by 'ae10'",
        "f RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        1,
        "Could not open file or uri for loading certificate from certs/a.pem",
        "f RESOURCE_NOT_FOUND",
    ),
    (
        't',
        2,
        "error: No interpreter found for Python 3.99 in managed installations or search path",
        "s RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        1,
        "To ../o.git\n ! [rejected]        HEAD -> main (fetch first)\nerror: failed to push some refs to '../o.git'",
        "f UNKNOWN",
    ),
    (
        'b',
        1,
        "npm error code EBADENGINE\nnpm error engine Unsupported engine",
        "f BROKEN_BUILD",
    ),
    (
        't',
        1,
        "TAP version 13\nnot ok 1 - serves\n  ---\n  failureType: 'testCodeFailure'\n  error: 'listen EADDRINUSE: address already in use 127.0.0.1:1'\n  code: 'EADDRINUSE'\n  ...\n# tests 1\n# pass 0\n# fail 1",
        "s UNKNOWN+",
    ),
    (
        'l',
        4,
        "[ERROR]: 'tsks' is not a valid attribute for a Play",
        "f VERIFICATION_FAILED",
    ),
];

#[test]
fn a_server_that_refuses_is_no_broken_build() {
    check(CREDENTIALS);
    check(SERVICES);
}

#[test]
fn a_certificate_that_is_not_trusted_is_not_tried_again() {
    check(TRUST);
}

#[test]
fn a_line_in_a_build_counts_by_what_it_says() {
    check(OWN_WORDS);
}

#[test]
fn who_only_fetches_and_stores_breaks_no_build() {
    let seen = |command: &str, output: &str| {
        let command = Some(command.to_owned());
        short(&classify(
            &FailureEvidence {
                command,
                ..evidence('b', 1, output, true)
            },
            None,
            &[],
            now(),
        ))
    };
    assert_eq!(
        seen("git fetch origin", "error: the moon is in the wrong house"),
        "f UNKNOWN"
    );
    assert_eq!(
        seen(
            "cd a && tar xf a.tgz",
            "error: the moon is in the wrong house"
        ),
        "f UNKNOWN"
    );
    assert_eq!(
        seen("git pull && make", "error: the moon is in the wrong house"),
        "f BROKEN_BUILD"
    );
    assert_eq!(
        seen("compile a.x", "error: the moon is in the wrong house"),
        "f BROKEN_BUILD"
    );
}

#[test]
fn a_traceback_is_known_by_what_it_raised() {
    let output = "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 3\nlib.TemplateGone: page.x";
    let failure = classify(&evidence('b', 1, output, true), None, &[], now());
    assert_eq!(
        (short(&failure).as_str(), failure.message.as_str()),
        ("f BROKEN_BUILD", "lib.TemplateGone: page.x")
    );
}

#[test]
fn a_prompt_makes_no_command_a_check() {
    for prompt in [
        "fix the failing test",
        "improve the readme",
        "make the build pass",
    ] {
        let command = Some(format!("llm '{prompt}'"));
        let said = "Error: Error code: 401 - {'error': {'message': 'Incorrect API key provided'}}";
        let evidence = FailureEvidence {
            stage: None,
            command,
            ..evidence('-', 1, said, true)
        };
        assert_eq!(
            short(&classify(&evidence, None, &[], now())),
            "a AUTH_FAILED",
            "{prompt}"
        );
    }
    let said =
        "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://r.example/";
    let evidence = FailureEvidence {
        stage: None,
        ..evidence('-', 1, said, true)
    };
    assert_eq!(
        short(&classify(&evidence, None, &[], now())),
        "a AUTH_FAILED"
    );
}

#[test]
fn a_message_may_be_what_a_runtime_says() {
    for message in [
        "connect ECONNREFUSED 127.0.0.1:443",
        "getaddrinfo ENOTFOUND api.example",
        "read ECONNRESET",
        "socket hang up",
        "curl: (6) Could not resolve host: api.example",
        "request to https://api.example/v1 failed, reason: connect ECONNREFUSED 10.0.0.1:443",
    ] {
        let message = Some(message.to_owned());
        let evidence = FailureEvidence {
            exit_code: None,
            message,
            ..evidence('a', 1, "", true)
        };
        assert_eq!(
            short(&classify(&evidence, None, &[], now())),
            "a NETWORK_ERROR+",
            "{:?}",
            evidence.message
        );
    }
}
