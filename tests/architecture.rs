//! The import law: README's table says what each module may import, and the code is held to it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The words in back quotes of a table cell.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Module → what it may import; `cli` may import everything and stands for itself.
fn law() -> BTreeMap<String, Option<BTreeSet<String>>> {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let rows = readme.lines().skip_while(|line| !line.starts_with("| module | may import |")).skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let module = quoted(cells[1]).into_iter().next().unwrap();
            (module, (cells[2] != "everything").then(|| quoted(cells[2])))
        })
        .collect()
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Every `crate::x` in a file, comments left out, grouped `use crate::{a, b}` included.
fn imports(text: &str) -> BTreeSet<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let word = |text: &str| -> String { text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut start = true;
            for (i, c) in group.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => start = true,
                    c if start && !c.is_whitespace() => {
                        found.insert(word(&group[i..]));
                        start = false;
                    }
                    _ => {}
                }
            }
        } else {
            found.insert(word(rest));
        }
    }
    found
}

#[test]
fn every_module_imports_only_what_the_table_allows() {
    let law = law();
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let mut seen = BTreeSet::new();
    let mut broken = Vec::new();
    for file in files {
        let relative = file.strip_prefix(root().join("src")).unwrap().to_owned();
        let first = relative.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let module = first.trim_end_matches(".rs").to_owned();
        if module == "lib" || module == "main" {
            continue;
        }
        seen.insert(module.clone());
        let Some(allowed) = law.get(&module) else {
            broken.push(format!("{}: the module is not in README's table", relative.display()));
            continue;
        };
        let Some(allowed) = allowed else { continue };
        for import in imports(&std::fs::read_to_string(&file).unwrap()) {
            if import != module && !allowed.contains(&import) {
                broken.push(format!("{} imports {import}", relative.display()));
            }
        }
    }
    assert!(broken.is_empty(), "against the import law:\n{}", broken.join("\n"));
    assert_eq!(seen, law.keys().cloned().collect(), "README's table and the tree name different modules");
}

#[test]
fn the_reader_of_imports_sees_groups_and_skips_comments() {
    let text = "use crate::{model::x, units::{A, B}, stats};\n// crate::cli\nfn f() { crate::sys::g() }";
    let expected: BTreeSet<String> = ["model", "units", "stats", "sys"].map(str::to_owned).into();
    assert_eq!(imports(text), expected);
}

#[test]
fn unsafe_code_is_in_sys_only_and_printing_in_cli_only() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let inside = |module: &str| file.strip_prefix(root().join("src")).unwrap().starts_with(module);
        let has = |word: &str| text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(word));
        assert!(inside("sys") || !has("unsafe {"), "{} has unsafe code", file.display());
        if file.file_name().is_some_and(|name| name.to_string_lossy().ends_with("tests.rs")) {
            continue; // A test says when it is skipped.
        }
        for word in ["println!(", "eprintln!(", "print!("] {
            assert!(inside("cli") || !has(word), "{} prints", file.display());
        }
    }
}
