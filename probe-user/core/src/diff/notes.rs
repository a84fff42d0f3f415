//! Notes about a comparison besides its numbers.

use super::Source;
use super::model::{SideReport, SourceKind};
use super::stretches::Stretches;
use super::survey::{Survey, Surveyed};
use crate::recording::replay::report::{damage, notes as of_recording};
use crate::recording::{Host, ReadAt};

/// A recording with fewer stretches is called short.
const FEW: usize = 8;

pub(super) fn notes<R: ReadAt>(
    sources: &[&[Source<'_, R>]; 2],
    surveys: &[Vec<Survey<'_, R>>; 2],
    sides: [&SideReport; 2],
) -> Vec<String> {
    let mut notes = Vec::new();
    let is_report = sides.iter().any(|side| side.kind == SourceKind::Report);
    if is_report {
        notes.push(
            "A report tells nothing of single calls, so nothing is judged: what is a change and what \
             is noise is told from two recordings of `ctrace record`."
                .to_owned(),
        );
    } else if sides.iter().any(|side| side.files.len() < 2) {
        notes.push(
            "One recording of a side tells nothing of what differs from run to run of the same \
             program: record each side several times (OLD... -- NEW...), so that this counts too."
                .to_owned(),
        );
    }
    let mut hosts: Vec<&Host> = Vec::new();
    for (source, survey) in sources.iter().zip(surveys).flat_map(|(s, v)| s.iter().zip(v)) {
        let Surveyed::Recording(read) = &survey.content else { continue };
        let recording = read.recording;
        let mut about = of_recording(recording);
        about.extend(damage(read.counted.counts.unreadable));
        notes.extend(about.into_iter().map(|note| format!("{}: {note}", source.file)));
        let stretches = Stretches::new(read.period.clone()).count();
        if stretches < FEW && !is_report {
            notes.push(format!(
                "{}: too short to be judged alone; stretches of 10 ms are compared, and {FEW} are \
                 needed",
                source.file
            ));
        }
        hosts.push(&recording.start().host);
    }
    if hosts.windows(2).any(|pair| pair[0] != pair[1]) {
        notes.push(
            "The recordings are not of the same machine and kernel; what differs may be these."
                .to_owned(),
        );
    }
    notes
}
