//! Threads without which there is no daemon.

use std::process::abort;
use std::thread::panicking;

/// Calls what a thread does. If that panics, the process ends: its clients would wait for ever for what no thread
/// does any more, and they connect again to a process that is started in its place.
pub(crate) fn vital(work: impl FnOnce()) {
    struct Ends;

    impl Drop for Ends {
        fn drop(&mut self) {
            if panicking() {
                // Past what a test keeps of its threads' output.
                let said = b"a thread that the daemon needs has panicked, so the process ends\n";
                let _ = rustix::io::write(rustix::stdio::stderr(), said);
                abort();
            }
        }
    }

    let _ends = Ends;
    work();
}
