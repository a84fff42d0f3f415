//! Joins the files of one rotated recording. They share their ids: each file begins with all
//! definitions so far.

use super::Start;
use super::index::ChunkEntry;
use super::missing;
use super::reader::Recording;
use crate::calls::paths::Node;

/// A recording and the names of its files.
pub struct Whole {
    /// Names as they were given.
    pub files: Vec<String>,
    /// The joined recording.
    pub recording: Recording,
}

/// The reason why files are not one recording.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// There are no files.
    #[error("there is no file to look at")]
    Nothing,
    /// The files are of different recordings.
    #[error(
        "{after} is not of the same recording as {before}: give the files of one `--rotate`, without \
         those that an earlier one may have left beside them"
    )]
    Unrelated {
        /// The file that begins earlier.
        before: String,
        /// The other file.
        after: String,
    },
    /// A file between them is missing, or they cover the same time.
    #[error(
        "{after} does not go on where {before} ends: a file between them is missing, or one is \
         given twice"
    )]
    Gap {
        /// The file that begins earlier.
        before: String,
        /// The other file.
        after: String,
    },
    /// The last blocks of the earlier file are missing, and nothing else reveals it.
    #[error(
        "{before} was not ended and breaks off before {after} begins: it is a copy of a file that was \
         still written to, or a file between them is missing"
    )]
    CutOff {
        /// The file that begins earlier.
        before: String,
        /// The other file.
        after: String,
    },
}

impl Recording {
    /// Joins the files of one recording, given in any order. Their names are for error messages.
    pub fn join(mut files: Vec<(String, Self)>) -> Result<Self, JoinError> {
        files.sort_by_key(|(_, file)| file.start.start_ns);
        let mut files = files.into_iter();
        let (mut before, mut joined) = files.next().ok_or(JoinError::Nothing)?;
        let mut is_damage_told = joined.unreadable > 0;
        for (after, file) in files {
            if !joined.is_of_one_run(&file) {
                return Err(JoinError::Unrelated { before, after });
            }
            let (end, begin) = (joined.period().1, file.start.start_ns);
            let is_cut_off = joined.end.is_none() && end < begin;
            if end != begin && !is_cut_off {
                return Err(JoinError::Gap { before, after });
            }
            if is_cut_off && !is_damage_told {
                return Err(JoinError::CutOff { before, after });
            }
            is_damage_told = file.unreadable > 0;
            joined.append(file);
            before = after;
        }
        Ok(joined)
    }

    /// Joins the files of several recordings: files belong together where one goes on at the end of
    /// another. The recordings come in the order of their first files. Two recordings of one
    /// process stay two.
    pub fn join_each(mut files: Vec<(String, Self)>) -> Result<Vec<Whole>, JoinError> {
        let mut all = Vec::new();
        while !files.is_empty() {
            let mut of_one = vec![files.remove(0)];
            while let Some(next) = files.iter().position(|(_, file)| goes_with(&of_one, file)) {
                of_one.push(files.remove(next));
            }
            let names = of_one.iter().map(|(name, _)| name.clone()).collect();
            all.push(Whole { files: names, recording: Self::join(of_one)? });
        }
        Ok(all)
    }

    /// True if the ids that both have mean the same in both.
    fn is_of_one_run(&self, other: &Self) -> bool {
        let start = Start { start_ns: other.start.start_ns, ..self.start.clone() };
        let is_same =
            |(a, b): (&Node, &Node)| (a.func, a.parent, a.other) == (b.func, b.parent, b.other);
        start == other.start
            && self.functions.iter().zip(&other.functions).all(|(a, b)| a.is_same(b))
            && self.objects.iter().zip(&other.objects).all(|(a, b)| a == b)
            && self.nodes.iter().zip(&other.nodes).all(is_same)
    }
}

/// True if a file goes on where one of the others ends, or the other way round.
fn goes_with(others: &[(String, Recording)], file: &Recording) -> bool {
    let (begin, end) = file.period();
    others.iter().any(|(_, other)| {
        let (from, to) = other.period();
        (to == begin || end == from) && from != begin && other.is_of_one_run(file)
    })
}

impl Recording {
    fn append(&mut self, next: Self) {
        let begin = self.source.append(next.source);
        let behind = |offset: u64| offset.saturating_add(begin);
        self.chunks.extend(next.chunks.into_iter().map(|chunk| ChunkEntry {
            offset: behind(chunk.offset),
            end: behind(chunk.end),
            ..chunk
        }));
        // Costs may have changed since: those of the later file hold.
        let known = self.functions.len();
        self.functions.splice(..known.min(next.functions.len()), next.functions);
        self.nodes.extend(next.nodes.into_iter().skip(self.nodes.len()));
        self.objects.extend(next.objects.into_iter().skip(self.objects.len()));
        self.addresses.extend(next.addresses);
        self.threads.extend(next.threads);
        self.unreadable = self.unreadable.saturating_add(next.unreadable);
        missing::append(&mut self.missing, next.start.start_ns, next.missing);
        self.end = next.end;
    }
}
