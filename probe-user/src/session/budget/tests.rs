use super::{Budget, Reading, Window};
use ctrace_core::units::Nanos;

const SECOND: u64 = 1_000_000_000;

/// A target with groups whose probes cost this much of each second in which they are armed.
struct World {
    budget: Budget,
    /// The target's own share of a core.
    busy: f64,
    costs: Vec<f64>,
    spent: Vec<f64>,
    now: u64,
    cpu: f64,
    windows: u32,
    /// A group that the kernel holds, or whose probes it refuses, when a window begins.
    held: Option<usize>,
    refused: Option<usize>,
    refusals: u32,
}

impl World {
    fn new(percent: f64, costs: &[f64]) -> Self {
        let mut budget = Budget::new(percent);
        costs.iter().for_each(|_| budget.add());
        budget.begin(Nanos::ZERO, Nanos::ZERO);
        let spent = vec![0.0; costs.len()];
        Self {
            budget,
            busy: 1.0,
            costs: costs.to_vec(),
            spent,
            now: 0,
            cpu: 0.0,
            windows: 0,
            held: None,
            refused: None,
            refusals: 0,
        }
    }

    fn totals(&self) -> Vec<Nanos> {
        self.spent.iter().map(|spent| Nanos(*spent as u64)).collect()
    }

    /// Lets time pass with the groups armed that always are, and those that have a window.
    fn pass(&mut self, nanos: u64, window: &[usize]) {
        self.now += nanos;
        self.cpu += self.busy * nanos as f64;
        for (group, cost) in self.costs.iter().enumerate() {
            if window.contains(&group) || !self.budget.in_windows(group) {
                self.spent[group] += cost * nanos as f64;
                self.cpu += cost * nanos as f64;
            }
        }
        let (at, cpu, spent) = (Nanos(self.now), Nanos(self.cpu as u64), self.totals());
        self.budget.look(Reading { at, cpu, spent: &spent });
    }

    /// Runs for this many seconds, with all windows that fall into them.
    fn run(&mut self, seconds: u64) {
        let end = self.now + seconds * SECOND;
        while self.now < end {
            match self.budget.window().cloned() {
                Some(window) if window.begins.0 <= self.now => self.pass_window(&window),
                Some(Window { begins, .. }) => {
                    self.pass((begins.0 - self.now).min(SECOND / 5), &[]);
                }
                None => self.pass(SECOND / 5, &[]),
            }
        }
    }

    fn pass_window(&mut self, window: &Window) {
        let mut groups = window.groups.clone();
        groups.retain(|group| self.held != Some(*group));
        if let Some(refused) = groups.extract_if(.., |group| self.refused == Some(*group)).next() {
            self.budget.could_not_arm(refused);
            self.refusals += 1;
        }
        let (begun, before) = (self.now, self.totals());
        let (armed, spent) = loop {
            let left = window.length.0 - (self.now - begun);
            self.pass(left.min(SECOND / 20), &groups);
            let (armed, used) = (Nanos(self.now - begun), self.totals());
            let spent: Vec<(usize, Nanos)> =
                groups.iter().map(|&g| (g, used[g].since(before[g]))).collect();
            let all = Nanos(spent.iter().map(|(_, spent)| spent.0).sum());
            if window.is_over(armed, all) {
                break (armed, spent);
            }
        };
        self.budget.window_over(window, Nanos(self.now), armed, &spent);
        self.windows += u32::from(!spent.is_empty());
    }

    fn in_windows(&self) -> Vec<usize> {
        (0..self.costs.len()).filter(|&group| self.budget.in_windows(group)).collect()
    }

    /// Returns the overhead relative to the time that the target used for itself.
    fn overhead_percent(&self) -> f64 {
        let spent: f64 = self.spent.iter().sum();
        100.0 * spent / (self.cpu - spent)
    }
}

#[track_caller]
fn check(percent: f64, costs: &[f64], in_windows: &[usize]) {
    let mut world = World::new(percent, costs);
    world.run(20);
    assert_eq!(world.in_windows(), in_windows, "{costs:?}");
    // Forget the cost of the first moments.
    (world.cpu, world.spent) = (0.0, vec![0.0; costs.len()]);
    (world.budget.cpu, world.budget.spent) = (Nanos::ZERO, world.totals());
    let windows = world.windows;
    world.run(3600);
    assert!(world.overhead_percent() <= percent, "{costs:?}: {}", world.overhead_percent());
    if !in_windows.is_empty() {
        assert!(world.windows - windows >= 12, "{costs:?}: {} windows", world.windows - windows);
    }
}

#[test]
fn what_is_cheap_stays_and_the_dearest_goes() {
    check(1.0, &[0.001, 0.002, 0.003], &[]);
    check(1.0, &[0.001, 0.5, 0.002], &[1]);
    check(1.0, &[0.0035, 0.005, 0.004], &[1, 2]);
    check(1.0, &[0.02], &[0]);
    check(5.0, &[30.0, 0.01, 10.0], &[0, 2]);
    check(0.1, &[3.0, 3.0, 3.0], &[0, 1, 2]);
}

#[test]
fn a_burst_is_noticed_at_once() {
    let mut world = World::new(1.0, &[0.5, 0.001]);
    world.pass(SECOND / 10, &[]);
    assert_eq!(world.in_windows(), [0]);
}

#[test]
fn a_little_too_much_for_a_moment_is_borne() {
    let mut world = World::new(1.0, &[0.02]);
    world.pass(SECOND, &[]);
    assert!(world.in_windows().is_empty());
    world.pass(SECOND, &[]);
    assert_eq!(world.in_windows(), [0]);
}

#[test]
fn what_is_calm_again_comes_back() {
    let mut world = World::new(1.0, &[2.0, 0.001]);
    world.run(5);
    assert_eq!(world.in_windows(), [0]);
    world.costs[0] = 0.002;
    world.run(600);
    assert!(world.in_windows().is_empty());
}

/// The others may use most of the budget for ever.
#[test]
fn what_costs_next_to_nothing_comes_back_beside_the_others() {
    let after = |costs: [f64; 3]| {
        let mut world = World::new(1.0, &[0.5, 0.0045, 0.004]);
        world.run(20);
        assert_eq!(world.in_windows(), [0, 1]);
        world.costs = costs.to_vec();
        world.run(120);
        world.in_windows()
    };
    for others in [0.004, 0.006, 0.0085] {
        assert_eq!(after([0.0, 0.0045, others]), [1], "{others}");
        assert_eq!(after([0.0, 0.00005, others]), [0; 0], "{others}");
        assert_eq!(after([0.0045, 0.0, others]), [0], "{others}");
    }
    assert_eq!(after([0.0, 0.001, 0.0085]), [1], "most of what is left");
    assert_eq!(after([0.5, 0.0, 0.0099]), [0]);
}

/// The first reading of a busy machine may show next to no time of the target.
#[test]
fn a_window_that_was_planned_too_late_is_brought_forward() {
    let mut budget = Budget::new(2.0);
    budget.add();
    budget.begin(Nanos::ZERO, Nanos::ZERO);
    let spent = [Nanos(SECOND)];
    let first = Reading { at: Nanos(SECOND), cpu: Nanos(2), spent: &spent };
    assert_eq!(budget.look(first), [0]);
    let late = budget.window().expect("one").begins;
    assert!(late.0 > 60 * SECOND, "{late:?}");
    for second in 2..20 {
        let cpu = Nanos((second - 1) * SECOND);
        budget.look(Reading { at: Nanos(second * SECOND), cpu, spent: &spent });
    }
    let soon = budget.window().expect("one").begins;
    assert!(soon.0 < 40 * SECOND, "{soon:?}");
}

/// A window would give the kernel new links to hold, and the group would never come back.
#[test]
fn what_the_kernel_still_holds_has_no_windows() {
    let mut world = World::new(1.0, &[2.0, 0.001]);
    world.run(5);
    assert_eq!(world.in_windows(), [0]);
    assert!(world.budget.let_return(0, Nanos(world.now)));
    assert_eq!((world.in_windows(), world.budget.window()), (vec![0], None));
    let windows = world.windows;
    world.run(20);
    assert_eq!((world.in_windows(), world.windows), (vec![0], windows));
    world.budget.take_out_of_windows(0);
    assert_eq!((world.in_windows(), world.budget.window()), (Vec::new(), None));
}

/// The kernel may hold the links of a whole kind of groups when its window begins.
#[test]
fn a_window_in_which_nothing_is_armed_does_not_keep_the_other_kind_away() {
    for held in [0, 1] {
        let mut world = World::new(1.0, &[30.0, 0.02]);
        world.run(5);
        assert_eq!(world.in_windows(), [0, 1]);
        (world.held, world.costs) = (Some(held), vec![1e-5; 2]);
        world.run(900);
        assert_eq!(world.in_windows(), [held]);
        world.held = None;
        world.run(900);
        assert!(world.in_windows().is_empty());
    }
}

/// Each attempt costs time, and fails again for the same reason.
#[test]
fn what_the_kernel_refuses_is_tried_seldom_but_for_ever() {
    let mut world = World::new(1.0, &[0.5, 0.02]);
    world.refused = Some(0);
    world.run(5);
    assert_eq!(world.in_windows(), [0, 1]);
    world.run(3600);
    assert!((8..=17).contains(&world.refusals), "{}", world.refusals);
    assert!(world.windows > 300, "{} windows of the other", world.windows);
    (world.refused, world.costs[0]) = (None, 0.001);
    world.run(900);
    assert_eq!(world.in_windows(), [1]);
}

#[test]
fn a_window_that_was_cut_short_teaches_nothing() {
    let mut world = World::new(1.0, &[2.0, 0.001]);
    world.run(5);
    let window = world.budget.window().cloned().expect("one");
    for spent in [Nanos::ZERO, Nanos(500)] {
        world.budget.window_over(&window, Nanos(world.now), Nanos(1), &[(0, spent)]);
        assert_eq!(world.budget.window().expect("one").length, window.length);
    }
}

#[test]
fn what_the_kernel_holds_for_long_has_windows_again() {
    let mut world = World::new(1.0, &[2.0, 0.001]);
    world.run(5);
    let held = |world: &mut World| world.budget.let_return(0, Nanos(world.now));
    assert!(held(&mut world));
    world.run(29);
    assert!(held(&mut world));
    world.run(2);
    assert!(!held(&mut world));
    assert_eq!(world.budget.window().expect("one").groups, [0]);
    // The next time counts anew.
    assert!(held(&mut world));
    world.run(29);
    assert!(held(&mut world));
}

/// Both would be calm without the other.
#[test]
fn what_is_going_to_return_is_counted() {
    let mut world = World::new(1.0, &[0.5, 0.4]);
    world.run(3);
    assert_eq!(world.in_windows(), [0, 1]);
    let window = world.budget.window().cloned().expect("one");
    // Half of the budget is 5 ms a second.
    let (at, first, second) = (Nanos(world.now), Nanos::from_millis(3), Nanos::from_millis(4));
    let mut round = |spent: &[(usize, Nanos)]| {
        let back = world.budget.window_over(&window, at, Nanos(SECOND), spent);
        if back == [0] {
            assert!(world.budget.let_return(0, at));
        }
        back
    };
    let backs: Vec<_> = (0..3).map(|_| round(&[(0, first), (1, second)])).collect();
    assert_eq!(backs, [vec![], vec![], vec![0]]);
    assert!((0..5).all(|_| round(&[(1, second)]).is_empty()));
    assert!(world.budget.let_return(0, at));
    world.budget.take_out_of_windows(0);
    assert_eq!(world.in_windows(), [1]);
}

/// The cost of a busy time says little about a target that does a hundredth of the work.
#[test]
fn a_target_that_becomes_calm_is_looked_at_soon() {
    let mut world = World::new(1.0, &[20.0, 0.001]);
    world.run(60);
    assert_eq!(world.in_windows(), [0]);
    world.busy = 0.01;
    world.costs = vec![20.0 * 1e-6, 1e-5];
    world.run(200);
    assert!(world.in_windows().is_empty(), "{:?}", world.budget);
}

/// The windows of a target that sleeps are long.
#[test]
fn a_window_ends_early_if_the_target_wakes_in_it() {
    let mut world = World::new(1.0, &[0.2, 0.001]);
    world.run(60);
    (world.busy, world.costs) = (0.001, vec![0.0002, 1e-6]);
    world.run(120);
    assert_eq!(world.in_windows(), [0]);
    let window = world.budget.window().cloned().expect("one");
    assert_eq!(window.length, Nanos(SECOND));
    let slept = world.now;
    world.pass_window(&window);
    assert_eq!(world.now - slept, SECOND, "it costs what was planned");
    (world.busy, world.costs) = (1.0, vec![0.2, 0.001]);
    let (woken, before) = (world.now, world.spent[0]);
    world.pass_window(&window);
    assert!(world.now - woken <= SECOND / 10, "{}", world.now - woken);
    let spent = world.spent[0] - before;
    assert!(spent <= 0.02 * SECOND as f64, "{spent}");
    let next = world.budget.window().expect("one");
    assert!(next.length.0 < SECOND / 10, "it has learned from the window: {next:?}");
}

#[test]
fn those_that_drown_others_have_windows_of_their_own() {
    let mut world = World::new(1.0, &[30.0, 0.02, 0.03]);
    let mut seen = [0, 0];
    for _ in 0..3000 {
        let windows = world.windows;
        world.pass(SECOND / 10, &[]);
        let Some(window) = world.budget.window().cloned() else { continue };
        world.run(1);
        assert!(window.groups == [0] || window.groups == [1, 2], "{window:?}");
        seen[usize::from(window.groups == [0])] += world.windows - windows;
    }
    assert!(seen[0] > 5 * seen[1] && seen[1] > 10, "{seen:?}");
}

#[test]
fn a_target_that_hardly_runs_is_left_alone() {
    let mut budget = Budget::new(1.0);
    budget.add();
    budget.begin(Nanos::ZERO, Nanos::ZERO);
    for second in 1..100 {
        // 50 µs of probes, 100 µs of its own.
        let (at, cpu) = (Nanos(second * SECOND), Nanos(second * 150_000));
        let spent = [Nanos(second * 50_000)];
        assert!(budget.look(Reading { at, cpu, spent: &spent }).is_empty());
    }
}
