//! Functions that are known by their names to frame a program or to wait. Their own time is hardly
//! work, so they do not lead a table.

/// Runtime functions between the start of a thread and the program's own code.
const FRAMES: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "clone3",
    "lang_start",
    "lang_start_internal",
    "__rust_begin_short_backtrace",
    "execute_native_thread_routine",
];

/// The same in C++ and Rust, by the beginnings of their names.
const LONG_FRAMES: &[&str] = &[
    "std::thread::_State_impl<",
    "std::thread::_Invoker<",
    "std::__invoke",
    "std::sys::backtrace::__rust_begin_short_backtrace",
];

/// Functions that sleep until somebody wakes them, or until time has passed.
const WAITS: &[&str] = &[
    "pthread_join",
    "pthread_clockjoin_np",
    "pthread_timedjoin_np",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "pthread_barrier_wait",
    "sem_wait",
    "sem_timedwait",
    "sem_clockwait",
    "nanosleep",
    "clock_nanosleep",
    "usleep",
    "sleep",
    "pause",
    "sigsuspend",
    "sigtimedwait",
    "sigwaitinfo",
    "poll",
    "ppoll",
    "select",
    "pselect",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "accept",
    "accept4",
    "wait",
    "wait4",
    "waitpid",
    "waitid",
    "futex_wait",
];

/// The same within C++ and Rust, by the end of their names. `wait` alone would be anybody's.
const LONG_WAITS: &[&str] = &[
    "std::thread::join",
    "std::condition_variable::wait",
    "std::thread::sleep",
    "std::thread::park",
    "thread::functions::sleep",
    "thread::functions::park",
    "thread::functions::park_timeout",
    "Thread::join",
    "JoinInner<T>::join",
    "JoinHandle<T>::join",
    "Condvar::wait",
    "Parker::park",
    "futex::futex_wait",
    // The time of an async call between two polls.
    "[await]",
];

/// Returns whether a function is the last of a program's own frames, or one of a runtime's.
pub(crate) fn frames(name: &str) -> bool {
    let end = name.rsplit("::").next().unwrap_or(name);
    end == "main" || runs_threads(name)
}

/// Returns whether a function is one of a runtime's between the start of a thread and a program's own code.
pub(crate) fn runs_threads(name: &str) -> bool {
    let end = name.rsplit("::").next().unwrap_or(name);
    FRAMES.contains(&name)
        || name.starts_with("std::") && FRAMES.contains(&end)
        || LONG_FRAMES.iter().any(|frame| name.starts_with(frame))
}

/// Returns whether a function of an object is known to wait. The C library has several names for
/// each; a program may have functions of its own with these names.
pub(crate) fn waits(name: &str, object: &str) -> bool {
    let is_libc =
        ["libc.", "libc-", "libpthread", "ld-musl"].iter().any(|it| object.starts_with(it));
    let bare = name.trim_start_matches("__GI_").trim_start_matches("__");
    // Rust has `<std::thread::Thread>::park` since 2025.
    let path = name.strip_prefix('<').map(|name| name.replacen(">::", "::", 1));
    let path = path.as_deref().unwrap_or(name);
    is_libc && WAITS.contains(&bare) || LONG_WAITS.iter().any(|wait| is_end(path, wait))
}

/// Returns whether the name ends in this path, as a whole.
fn is_end(name: &str, path: &str) -> bool {
    name.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_known_by_whole_names() {
        for name in ["__nanosleep", "__GI___poll", "__GI_select", "pthread_join"] {
            assert!(waits(name, "libc.so.6"), "{name}");
            assert!(!waits(name, "server"), "a function of its own: {name}");
        }
        for name in [
            "std::sys::thread::unix::Thread::join",
            "<std::sys::thread::unix::Thread>::join",
            "std::thread::JoinInner<T>::join",
            "<std::thread::JoinInner<T>>::join",
            "std::thread::functions::sleep",
        ] {
            assert!(waits(name, "server"), "{name}");
        }
        for name in ["app::wait", "join", "MyThread::join", "poll_events", "await"] {
            assert!(!waits(name, "libc.so.6"), "{name}");
        }
    }

    #[test]
    fn frames_are_known_by_whole_names() {
        for name in ["main", "app::main", "std::rt::lang_start_internal", "start_thread"] {
            assert!(frames(name), "{name}");
        }
        let run = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<void (*)()>>>::_M_run";
        assert!(runs_threads(run) && runs_threads("start_thread") && !runs_threads("main"));
        for name in ["app::lang_start", "domain", "app::run"] {
            assert!(!frames(name), "{name}");
        }
    }
}
