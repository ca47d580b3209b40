// Made by `recover hook install opencode`; `recover hook uninstall opencode` removes it.
import { spawn } from "node:child_process"

export const Recover = async ({ directory, worktree }) => {
  const failed = new Set()
  const cwd = worktree && worktree !== "/" ? worktree : directory
  const tell = (event) =>
    new Promise((done) => {
      const child = spawn("sh", ["-c", "recover hook run opencode || true"], { cwd, stdio: ["pipe", "ignore", "ignore"] })
      const limit = setTimeout(() => child.kill(), 75000)
      const end = () => (clearTimeout(limit), done())
      child.on("error", end)
      child.on("close", end)
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify({ cwd, ...event }))
    })
  return {
    config: async (config) => {
      config.command = { ...{"recover:checkpoint":{"description":"Take a checkpoint of the work tree with recover","template":"Take a checkpoint of this work tree: run `recover checkpoint create --if-changed -m \"DESCRIPTION\"`, where DESCRIPTION is at\nmost ten words about the state of the work, or what the user wrote here: $ARGUMENTS\n\nReport the checkpoint's number, or that nothing has changed since the latest one. Change no files.\n"},"recover:status":{"description":"Show what recover recorded here and what is to be done","template":"Run `recover status` and `recover checkpoint list`. What the user asked for in particular: $ARGUMENTS\n\nReport in a few sentences what state the run is in, what changed, what is to look at (with the names of failing tests), and\nwhich checkpoints there are to go back to. Quote the commands that `recover` recommends; run none of them, and change no\nfiles.\n"},"recover:undo":{"description":"Undo the last rollback, restore or accept by recover","template":"The user wants to undo what `recover` last did to the files of this work tree: a rollback, a restore or an accept. What they\nadded: $ARGUMENTS\n\n1. Run `recover undo --dry-run` and list the files that would change.\n2. If it refuses, report its message and its hint, and stop. Add no flag that overwrites files edited by hand\n   (`--edits discard`) unless the user wrote it above.\n3. Otherwise run `recover undo`, with the same flags.\n4. Read the files that changed again before you edit them.\n"}}, ...config.command }
      config.mcp = { ...{"recover":{"type":"local","command":["recover","mcp"]}}, ...config.mcp }
    },
    "tool.execute.before": async (input, output) => {
      await tell({
        hook_event_name: "PreToolUse",
        session_id: input.sessionID,
        tool_name: input.tool,
        tool_input: output.args,
      })
    },
    event: async ({ event }) => {
      const session_id = event.properties?.sessionID
      if (event.type === "session.idle" && !failed.delete(session_id)) {
        await tell({ hook_event_name: "Stop", session_id })
      }
      if (event.type === "session.error") {
        const { name, data } = event.properties?.error ?? {}
        failed.add(session_id)
        if (name === "MessageAbortedError") return
        await tell({
          hook_event_name: "StopFailure",
          session_id,
          error: name,
          error_details: data?.message,
        })
      }
    },
  }
}
