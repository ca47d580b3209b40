#!/usr/bin/env node
'use strict';
// Starts the program, which npm took for this platform from the optional dependencies.
const { spawn } = require('child_process');

const platform = `@NAME@-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${platform}/bin/recover`);
} catch {
  console.error(`recover: the package ${platform} is not installed`);
  console.error('hint: install @NAME@ again, with its optional dependencies; on other systems, build it with cargo');
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
// Those of a terminal reach the program by themselves, and a second one would mean more to it.
for (const signal of ['SIGINT', 'SIGQUIT']) process.on(signal, () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`recover: ${program}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
