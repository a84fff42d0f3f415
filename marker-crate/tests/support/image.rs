//! The sections of a program's file, at their addresses in this process.

use ctrace_common::SiteEntry;
use object::{Object, ObjectSection, ObjectSymbol};
use std::sync::OnceLock;

#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) address: u64,
    pub(crate) version: u8,
    pub(crate) flags: u8,
    pub(crate) shape: u8,
    pub(crate) level: u8,
    pub(crate) line: u32,
    pub(crate) name: Option<String>,
    /// The list of values behind the name.
    pub(crate) values: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) group: Option<String>,
    /// The number behind the group.
    pub(crate) colour: Option<u32>,
    pub(crate) semaphore: u64,
    pub(crate) point: u64,
    pub(crate) text: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Runtime {
    pub(crate) flush: u64,
    pub(crate) register: u64,
    pub(crate) list: u64,
    pub(crate) name: String,
}

/// All addresses include the bias.
pub(crate) struct Image {
    pub(crate) bias: u64,
    pub(crate) sites: Vec<Site>,
    pub(crate) runtime: Runtime,
    pub(crate) runtimes: usize,
    data: Vec<u8>,
}

/// Returns the test program itself, at its place in memory.
pub(crate) fn own() -> &'static Image {
    static OWN: OnceLock<Image> = OnceLock::new();
    OWN.get_or_init(|| {
        let path = std::env::current_exe().unwrap();
        let data = std::fs::read(&path).unwrap();
        let here = on_thread_symbol as *const () as u64;
        let file = object::File::parse(&*data).unwrap();
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok("ctrace_test_anchor"));
        let bias = here - symbol.unwrap().address();
        drop(file);
        Image::new(data, bias)
    })
}

#[unsafe(export_name = "ctrace_test_anchor")]
extern "C" fn on_thread_symbol() {}

impl Image {
    pub(crate) fn new(data: Vec<u8>, bias: u64) -> Image {
        let file = object::File::parse(&*data).unwrap();
        let (sites_at, sites) = section(&file, "ctrace_sites");
        let (runtime_at, runtime) = section(&file, "ctrace_runtime");
        let text = |at: u64| {
            (at != 0).then(|| {
                let bytes = memory(&file, at);
                let end = bytes.iter().position(|&byte| byte == 0).unwrap();
                String::from_utf8(bytes[..end].to_vec()).unwrap()
            })
        };
        let moved = |at: u64| if at == 0 { 0 } else { at + bias };
        let sites = sites.chunks(32).zip((sites_at..).step_by(32)).map(|(entry, at)| {
            let field = |offset| relative(entry, at, offset);
            Site {
                address: at + bias,
                version: entry[0],
                flags: entry[1],
                shape: entry[2],
                level: entry[3],
                line: u32::from_le_bytes(entry[4..8].try_into().unwrap()),
                name: text(field(8)),
                values: (entry[1] & SiteEntry::VALUES != 0).then(|| {
                    let length = text(field(8)).unwrap().len() as u64;
                    text(field(8) + length + 1).unwrap()
                }),
                file: text(field(12)),
                group: text(field(16)),
                colour: (entry[1] & SiteEntry::COLOURED != 0).then(|| {
                    let length = text(field(16)).unwrap().len() as u64;
                    let bytes = memory(&file, field(16) + length + 1);
                    u32::from_le_bytes(bytes[..4].try_into().unwrap())
                }),
                semaphore: moved(field(20)),
                point: moved(field(24)),
                text: moved(field(28)),
            }
        });
        let sites = sites.collect();
        assert_eq!(runtime[0], 2, "the version");
        let field = |offset| relative(&runtime, runtime_at, offset);
        let runtimes = runtime.len() / 32;
        let runtime = Runtime {
            flush: moved(field(4)),
            register: moved(field(8)),
            list: moved(field(12)),
            name: text(field(16)).unwrap(),
        };
        Image { bias, sites, runtime, runtimes, data }
    }

    pub(crate) fn named(&self, name: &str) -> Vec<Site> {
        self.sites.iter().filter(|site| site.name.as_deref() == Some(name)).cloned().collect()
    }

    pub(crate) fn file(&self) -> object::File<'_> {
        object::File::parse(&*self.data).unwrap()
    }

    /// Returns the bytes of the file at an address in memory.
    pub(crate) fn bytes(&self, address: u64) -> Vec<u8> {
        memory(&self.file(), address - self.bias).to_vec()
    }

    /// Returns the name of the section around an address in memory.
    pub(crate) fn section_of(&self, address: u64) -> String {
        let at = address - self.bias;
        let file = self.file();
        let around = file.sections().find(|section| {
            section.address() != 0
                && (section.address()..section.address() + section.size()).contains(&at)
        });
        around.unwrap().name().unwrap().to_owned()
    }

    /// Returns the name of the symbol around an address in memory.
    pub(crate) fn symbol_of(&self, address: u64) -> Option<String> {
        let at = address - self.bias;
        let file = self.file();
        let around = file
            .symbols()
            .find(|symbol| (symbol.address()..symbol.address() + symbol.size()).contains(&at));
        around.map(|symbol| symbol.name().unwrap().to_owned())
    }
}

fn relative(entry: &[u8], at: u64, offset: usize) -> u64 {
    let field = i32::from_le_bytes(entry[offset..offset + 4].try_into().unwrap());
    if field == 0 { 0 } else { (at + offset as u64).wrapping_add_signed(field.into()) }
}

fn section(file: &object::File<'_>, name: &str) -> (u64, Vec<u8>) {
    let section = file.section_by_name(name).unwrap_or_else(|| panic!("no section {name}"));
    assert_eq!(section.size() % 32, 0);
    assert_eq!(section.address() % 32, 0);
    (section.address(), section.data().unwrap().to_vec())
}

fn memory<'a>(file: &object::File<'a>, at: u64) -> &'a [u8] {
    let around = file.sections().find(|section| {
        section.address() != 0
            && (section.address()..section.address() + section.size()).contains(&at)
    });
    let around = around.unwrap();
    &around.data().unwrap()[(at - around.address()) as usize..]
}
