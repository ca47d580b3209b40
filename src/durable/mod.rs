//! Files that survive a kill: written whole or not at all, and locks that die with their holder.
//!
//! The guarantee of [`write_atomic`]: after it returns, the new content is on disk under the name; if the process or
//! the machine dies before, the old content is still there. Locks are kernel locks (`flock`), so a dead holder never
//! blocks anybody and no age is ever judged.

mod atomic;
mod lock;
mod room;
mod temporary;

pub use atomic::{
    keep_copy, place_of_copy, sync_dir, write_atomic, write_atomic_but_folder, write_atomic_mode, write_atomic_unsynced,
};
pub use lock::{FileLock, LockError};
pub use room::{Lack, lack};
pub use temporary::{is_left_over, is_temporary, reap, temporary_prefix};
