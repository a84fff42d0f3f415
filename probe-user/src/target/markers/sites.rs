//! Reads `ctrace_sites`: the scopes that can be switched on, and where a program asks for its tables.

use super::flaws::{Flaw, Flaws};
use super::image::{Entry, Image, target, word};
use super::values;
use crate::target::elf::ElfLayout;
use crate::target::read::budget::TooLarge;
use ctrace_common::SiteEntry;
use ctrace_core::{colour::Colour, function::ValueInfo, points::PointShape};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub(super) const SECTION: &str = "ctrace_sites";
const VERSION: u8 = 1;
const NOP: u8 = 0x90;
/// The values of an async function. They are none that a user asks for.
const ASYNC_VALUES: &str = "call:u64";

/// Limit for all texts of an object together, in bytes. Entries can name overlapping ones.
const MOST_TEXT: usize = 64 << 20;
/// Bytes that an entry takes, with its scope.
const ENTRY: u64 = 256;
/// Bytes that a value of a scope takes, with its names.
const VALUE: u64 = 256;

/// All places of one scope or point: the compiler may have emitted it several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkerScope {
    /// The marker's name, else that of the function around it, else `FILE:LINE`.
    pub name: Arc<str>,
    pub group: Option<Arc<str>>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
    pub is_whole_function: bool,
    /// True if its names come with its events. `name` stands for all of them.
    pub is_named_late: bool,
    /// Its shape, if it is no scope.
    pub point: Option<PointShape>,
    /// True for a scope whose calls are frames.
    pub is_frame: bool,
    /// True for an async function: its entries are polls, and ends of its calls.
    pub is_async: bool,
    pub colour: Option<Colour>,
    /// The values that come with its entries.
    pub values: Vec<ValueInfo>,
    /// Sorted by address.
    pub sites: Vec<MarkerSite>,
}

/// One place of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerSite {
    /// The address of its entry in the object's headers. Its events carry bits 5 to 46 of it after
    /// adding the load bias.
    pub address: u64,
    /// File offset of the counter that switches it on: the kernel's `ref_ctr_offset`.
    pub semaphore: u64,
    /// File offset of the control point.
    pub point: u64,
    /// An address in the function around it.
    pub code: Option<u64>,
}

impl MarkerScope {
    /// Returns `group/name`, or the name where there is no group.
    pub(crate) fn full_name(&self) -> Arc<str> {
        match &self.group {
            Some(group) => format!("{group}/{}", self.name).into(),
            None => Arc::clone(&self.name),
        }
    }
}

/// The properties that entries of one scope share.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    group: Option<Arc<str>>,
    name: Arc<str>,
    file: Option<Arc<str>>,
    line: Option<u32>,
    is_whole_function: bool,
    is_named_late: bool,
    point: Option<PointShape>,
    is_frame: bool,
    is_async: bool,
    colour: Option<Colour>,
    /// The list of its values. It is a sound one.
    values: Option<Arc<str>>,
}

/// The contents of the section.
#[derive(Default)]
pub(super) struct Sites {
    pub(super) scopes: Vec<MarkerScope>,
    /// The places where a program asks for CTRACK's tables. They are nothing that a user chooses.
    pub(super) requests: Vec<MarkerSite>,
}

/// The meaning of an entry.
enum Meaning {
    Scope(Identity),
    Request,
}

pub(super) fn read(
    image: &Image<'_>,
    layout: &ElfLayout,
    function_around: impl Fn(u64) -> Option<String>,
    flaws: &mut Flaws,
) -> Result<Sites, TooLarge> {
    let budget = image.source().budget();
    let mut ticker = budget.ticker();
    let mut reader = Reader { image, texts: HashMap::new(), text_left: MOST_TEXT };
    let mut scopes: BTreeMap<Identity, Vec<MarkerSite>> = BTreeMap::new();
    let mut requests = Vec::new();
    let mut semaphores: HashMap<u64, u64> = HashMap::new();
    let entries = image.entries(layout, SECTION, flaws);
    budget.charge(entries.len() as u64 * ENTRY)?;
    for entry in entries {
        ticker.tick()?;
        match reader.entry(&entry, &function_around) {
            // The kernel has one counter for each place.
            Ok((_, site))
                if *semaphores.entry(site.point).or_insert(site.semaphore) != site.semaphore =>
            {
                flaws.add(Flaw::Point);
            }
            Ok((Meaning::Scope(identity), site)) => {
                scopes.entry(identity).or_default().push(site);
            }
            Ok((Meaning::Request, site)) => requests.push(site),
            Err(flaw) => flaws.add(flaw),
        }
    }
    let scope = |(identity, sites)| -> Result<_, TooLarge> {
        ticker.tick()?;
        let Identity {
            group,
            name,
            file,
            line,
            is_whole_function,
            is_named_late,
            point,
            is_frame,
            is_async,
            colour,
            values,
        } = identity;
        // Any number of scopes may share a list.
        let values = values.filter(|_| !is_async);
        let values = values.as_deref().and_then(values::parse).unwrap_or_default();
        budget.charge(values.len() as u64 * VALUE)?;
        Ok(MarkerScope {
            name,
            group,
            file,
            line,
            is_whole_function,
            is_named_late,
            point,
            is_frame,
            is_async,
            colour,
            values,
            sites,
        })
    };
    Ok(Sites { scopes: scopes.into_iter().map(scope).collect::<Result<_, _>>()?, requests })
}

struct Reader<'image, 'data> {
    image: &'image Image<'data>,
    texts: HashMap<u64, Arc<str>>,
    text_left: usize,
}

impl Reader<'_, '_> {
    fn entry(
        &mut self,
        entry: &Entry,
        function_around: impl Fn(u64) -> Option<String>,
    ) -> Result<(Meaning, MarkerSite), Flaw> {
        let (address, fields) = entry;
        if fields[0] != VERSION {
            return Err(Flaw::Version);
        }
        let line = Some(word(fields, 4)).filter(|line| *line != 0);
        let (name, file, group) = (
            self.text(target(entry, 8))?,
            self.text(target(entry, 12))?,
            self.text(target(entry, 16))?,
        );
        let semaphore = self.semaphore(target(entry, 20))?;
        let point = self.point(target(entry, 24))?;
        let code = target(entry, 28);
        let site = MarkerSite { address: *address, semaphore, point, code };
        if fields[1] & SiteEntry::POINT != 0 && fields[2] == SiteEntry::REQUEST {
            return Ok((Meaning::Request, site));
        }
        let name = match name {
            Some(name) => name,
            None => {
                let around = code.and_then(function_around);
                let name = around.unwrap_or_else(|| place_name(file.as_deref(), line, *address));
                self.take(name.len())?;
                name.into()
            }
        };
        let is = |flag: u8| fields[1] & flag != 0;
        let (is_whole_function, is_named_late) =
            (is(SiteEntry::WHOLE_FUNCTION), is(SiteEntry::NAMED_LATE));
        let has_shape = |shape| !is(SiteEntry::POINT) && fields[2] == shape;
        let is_frame = has_shape(SiteEntry::FRAME);
        let point = is(SiteEntry::POINT).then(|| PointShape::from_file(fields[2], fields[3]));
        let values = is(SiteEntry::VALUES).then(|| self.values(target(entry, 8), is_named_late));
        let values = values.transpose()?;
        let is_async = has_shape(SiteEntry::ASYNC) && values.as_deref() == Some(ASYNC_VALUES);
        let colour = is(SiteEntry::COLOURED).then(|| self.colour(target(entry, 16))).flatten();
        let identity = Identity {
            group,
            name,
            file,
            line,
            is_whole_function,
            is_named_late,
            point,
            is_frame,
            is_async,
            colour,
            values,
        };
        Ok((Meaning::Scope(identity), site))
    }

    /// Returns the list of values behind a name, if it is a sound one. Events have room for one text,
    /// be it a name or a value.
    fn values(&mut self, name: Option<u64>, is_named_late: bool) -> Result<Arc<str>, Flaw> {
        let name = name.ok_or(Flaw::Values)?;
        let length = self.image.text(name).ok_or(Flaw::Text)?.len() as u64;
        let list = self.text(name.checked_add(length + 1))?.ok_or(Flaw::Values)?;
        let values = values::parse(&list).ok_or(Flaw::Values)?;
        let has_text = values.last().is_some_and(|last| last.kind.is_text());
        if has_text && is_named_late { Err(Flaw::Values) } else { Ok(list) }
    }

    /// Returns the colour behind a group. A scope without a sound one has none.
    fn colour(&self, group: Option<u64>) -> Option<Colour> {
        let length = self.image.text(group?)?.len() as u64;
        let number = self.image.bytes(group?.checked_add(length + 1)?)?;
        Colour::from_rgb(u32::from_le_bytes(number))
    }

    fn text(&mut self, address: Option<u64>) -> Result<Option<Arc<str>>, Flaw> {
        let Some(address) = address else { return Ok(None) };
        if let Some(text) = self.texts.get(&address) {
            return Ok(Some(Arc::clone(text)));
        }
        let text = self.image.text(address).ok_or(Flaw::Text)?;
        if text.is_empty() {
            return Ok(None);
        }
        self.take(text.len())?;
        let text: Arc<str> = String::from_utf8_lossy(text).into();
        self.texts.insert(address, Arc::clone(&text));
        Ok(Some(text))
    }

    fn take(&mut self, text: usize) -> Result<(), Flaw> {
        self.text_left = self.text_left.checked_sub(text).ok_or(Flaw::TooMany)?;
        Ok(())
    }

    /// Checks the place of the counter, which the kernel increments.
    fn semaphore(&self, address: Option<u64>) -> Result<u64, Flaw> {
        const SIZE: u64 = 2;
        let address = address.ok_or(Flaw::Semaphore)?;
        let segment = self.image.segment(address, SIZE).filter(|segment| segment.writable);
        segment.ok_or(Flaw::Semaphore)?;
        let offset = self.image.file_offset(address, SIZE).ok_or(Flaw::SemaphoreWithoutBytes)?;
        // The kernel takes 0 for no counter, and refuses unaligned ones.
        (offset != 0 && offset.is_multiple_of(SIZE)).then_some(offset).ok_or(Flaw::Semaphore)
    }

    /// Checks the place of the control point, on which the kernel puts a breakpoint.
    fn point(&self, address: Option<u64>) -> Result<u64, Flaw> {
        let address = address.ok_or(Flaw::Point)?;
        let segment = self.image.segment(address, 1).filter(|segment| segment.executable);
        segment.ok_or(Flaw::Point)?;
        let is_nop = self.image.bytes(address) == Some([NOP]);
        is_nop.then(|| self.image.file_offset(address, 1)).flatten().ok_or(Flaw::Point)
    }
}

fn place_name(file: Option<&str>, line: Option<u32>, address: u64) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.to_owned(),
        (None, _) => format!("marker at {address:#x}"),
    }
}
