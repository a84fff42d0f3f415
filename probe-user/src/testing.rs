//! The items that tests, examples and fuzz targets outside this crate use, and nothing else. All
//! others end at the crate, so the compiler finds what nobody uses.

pub mod bpf {
    pub use crate::bpf::{
        Attachment, BpfError, CallElements, CallSources, Config, Drained, Features, Kernel,
        LinkChoice, LinkKind, Lost, LostCounter, Rings, Role, Site, Unmet, attach_nothing, now,
    };
}

pub mod program {
    pub use crate::{
        session::{
            plan::{ObjectGuards, Planner, Sites},
            run::launch::{Launched, Program, Streams, exit_code},
        },
        user::Identity,
    };
}

pub mod target {
    pub use crate::target::{
        launch::resolve,
        list::list_functions,
        names::demangle::{full, short, without_clone_suffix, without_generics},
        object::Object,
        place::{
            Candidate, CodeMap, Guards, Policy, Refusal, Returns, StackSwitch, Unguardable,
            explain, guards, place, place_for,
        },
        plan::{CostClass, EntrySite, ExitKind, ExitPlacement, GuardKind, GuardSite, Placement},
        read::{
            budget::{Budget, ObjectLimits},
            source::Source,
        },
        select::{Patterns, Selector},
        usdt::{arguments as usdt_arguments, provider::ProviderFile},
    };
}

pub mod ui {
    pub use crate::ui::{
        SaidBelow, Style, ViewError, ViewName, ViewOptions, loss_line, render_csv,
        render_interval_csv, render_table,
    };
}
