//! A server answered, and refused: the credentials are missing or wrong, or its certificate is not trusted.
//! Unlike a connection that is lost, the same again meets the same answer.

use super::rule::{BUILD, LINT, Rule, TEST, TYPECHECK, rule};
use crate::policy::classify::verdict::{LIMIT, UNAUTHORIZED};

const FEEDBACK: u8 = BUILD | TEST | LINT | TYPECHECK;

pub(super) const RULES: &[Rule] = &[
    rule(
        "refused.certificate",
        FEEDBACK,
        r"(?i)\bcertificate verif(?:y|ication) failed|\bcertificate problem: |\bself[- ]?signed\b.{0,20}\bcert|\bSELF_SIGNED_CERT|\bunable to (?:get local issuer|verify the first) certificate|\bUNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT\w*)|\bcertificate (?:is |was |has )?(?:not trusted|untrusted|expired|been revoked|not yet valid|signed by (?:an )?unknown authority)|\bcertificate of \W?\S+ (?:is not trusted|doesn't have a known issuer|has expired)|\bcannot verify \S+ certificate|\b(?:CERT_(?:HAS_EXPIRED|NOT_YET_VALID|UNTRUSTED)|ERR_TLS_CERT_ALTNAME_INVALID)\b|\binvalid peer certificate\b|\bx509: (?:certificate|cannot validate)|\bPKIX path (?:building|validation) failed|\bcurl: \(60\)|\bproblem confirming the ssl certificate\b|\bcertificate subject name\b.{0,80}\bdoes not match\b",
        LIMIT,
    ),
    // What such tools say in no other case.
    rule(
        "refused.tool",
        FEEDBACK,
        r"\bnpm (?:error|ERR!) code E(?:401|403|NEEDAUTH)\b|\bERR_PNPM_FETCH_40[13]\b|fatal: Authentication failed for|could not read (?:Username|Password) for|HTTP Basic: Access denied|remote: Permission to .* denied|unable to access 'https?://.*: The requested URL returned error: 40[13]\b|\bcurl: \(22\) .* 40[13]\b|^HTTP error 40[13] while getting |\bHTTP status client error \(40[13]\b",
        UNAUTHORIZED,
    ),
    rule(
        "refused.status",
        BUILD,
        r"(?i)\b40[13]\W{1,4}(?:client error\W{1,3})?(?:unauthori[sz]ed|forbidden|access denied)\b|\b(?:unauthori[sz]ed|forbidden)\W{1,3}40[13]\b|\b(?:HTTP(?:/\d(?:\.\d)?)?|status(?: ?code)?|response(?: code| status)?|(?:server )?returned(?: error| an?)?|error code|got|code|error)\W{0,3}(?:code |error |status )?40[13](?:$|[.,;:)\]\x22'`]|\s+(?:$|-|\(|for|from|while|when|getting|fetching|on|at|url|credentials)\b)",
        UNAUTHORIZED,
    ),
    rule(
        "refused.login",
        BUILD,
        r"(?i)\bauth(?:entication|orization)? (?:(?:has|is|was) )?(?:failed|failure|required|needed)\b|\b(?:requires?|needs?) (?:\S+ ){0,2}auth(?:$|[ .,;:])|\b(?:requires?|needs?|must|provide|supply|lack(?:s|ing)?(?: of)?|invalid|bad|wrong|incorrect|missing|expired) (?:\S+ ){0,2}(?:credentials?\b|authentication\b|authorization\b|api[ -]?key\b|access key\b|(?:access|auth\w*|api|security|bearer|session|deploy) token\b|password\b)|\bno (?:(?:basic|valid|usable|stored|matching|auth\w*) ){0,2}credentials\b|\b(?:unable to|could not|couldn't|cannot|can't|failed to) (?:locate|find|load|get|obtain|retrieve) (?:\S+ ){0,3}credentials\b|^(?:\S+: |error\W+)*(?:denied|unauthori[sz]ed|not authori[sz]ed)(?:: |\W*$)|\(unauthori[sz]ed\)|\bfrom server \(Forbidden\)|\bno token found\b|\blogin (?:incorrect|failed)\b|\b(?:access|permission) denied for (?:user|role)\b|\b(?:must|need to|have to) be logged in\b|\bnot (?:currently )?logged in\b|\b(?:please|must|need to|have to) (?:first )?(?:run:? )?\W?(?:[\w-]+ ){0,2}(?:log ?in|sign in|authenticate)\b|\btoken (?:\S+ )?(?:has |is |was )?(?:expired|invalid|revoked|rejected)\b|\b(?:AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|NoCredentials|AuthenticationFailed)(?:Error|Exception)?\b|\bNOAUTH\b|\bWRONGPASS\b",
        UNAUTHORIZED,
    ),
];
