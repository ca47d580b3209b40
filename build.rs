//! Build script: options for the linker.
#![allow(clippy::print_stdout)]

fn main() {
    // It is called from hooks at every step of an agent, so it must start at once: at a fixed address nothing is left for
    // the loader to relocate, which was 2 ms of 5 (timezones, command and Unicode tables are full of pointers).
    let target = |what| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
