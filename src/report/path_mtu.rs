//! The largest packet: per direction, what routers say, where larger ones vanish, and what TCP makes of it.

use super::machines::{ENDS, cell};
use super::mtu_parts;
use super::network::counter_rows;
use super::render::Style;
use super::view::{Table, Tone, View};
use crate::model::mtu::{Limiter, MtuSection, PathMtu, RouterWord, WordFault};
use crate::model::{Direction, Document, Outcome, Role};
use crate::units::Mtu;

/// The most routers of a path that are shown, as TTLs above it are not used.
const MAX_HOPS: usize = 64;

/// The name of the row of ICMP echo.
const ECHO: &str = "ICMP echo, there and back";

/// The paths that were searched, with their names.
fn paths(section: &MtuSection) -> Vec<(&'static str, &PathMtu)> {
    let ways = Direction::BOTH.into_iter().filter_map(|way| Some((way.arrow(), section.of(way).measured()?)));
    ways.chain(section.echo.measured().map(|echo| (ECHO, &echo.path))).collect()
}

/// The first screen of a document about nothing else.
pub(super) fn summary(document: &Document, view: &mut View) {
    let Some(section) = document.measurements.mtu.measured() else {
        return view.note(Tone::Plain, "Nothing could be measured; the reasons are under “Not measured” below.");
    };
    let mut table = Table::new(&["direction", "largest packet", "interface allows", "limited by"]);
    for (name, path) in paths(section) {
        table.rows.push(vec![name.to_owned(), path.mtu.to_string(), path.ceiling.to_string(), limiter(document, name, path)]);
    }
    view.table(table);
    for way in Direction::BOTH {
        if let Outcome::Failed(why) = section.of(way) {
            view.note(Tone::Warning, format!("{} could not be measured: {}", way.arrow(), why.reason.trim()));
        }
    }
}

/// The section.
pub(super) fn section(document: &Document, style: &Style, view: &mut View) {
    let Some(section) = document.measurements.mtu.measured() else { return };
    view.section("Path MTU");
    directions(document, section, view);
    let found = paths(section);
    words(&found, view);
    for (name, path) in &found {
        location(document, name, path, view);
    }
    view.facts(layers(document));
    mtu_parts::tcp(document, section, view);
    mtu_parts::streams(section, view);
    mtu_parts::gain(section, view);
    mtu_parts::services(document, section, view);
    counters(section, view);
    if style.trace {
        for (name, path) in &found {
            mtu_parts::trace(name, path, view);
        }
    }
}

/// What passes each way.
fn directions(document: &Document, section: &MtuSection, view: &mut View) {
    let mut table =
        Table::new(&["direction", "largest packet", "interface allows", "limited by", "probes", "lost that fit", "time", "RTT"]);
    let row = |name: &str, path: &PathMtu| {
        let (sent, lost) = path.loss();
        vec![
            name.to_owned(),
            path.mtu.to_string(),
            path.ceiling.to_string(),
            limiter(document, name, path),
            path.probes.to_string(),
            if lost > 0 { format!("{lost} of {sent}") } else { String::new() },
            path.elapsed_us.to_string(),
            path.rtt_us.map(|rtt| rtt.to_string()).unwrap_or_default(),
        ]
    };
    let width = table.header.len();
    for way in Direction::BOTH {
        let outcome = section.of(way);
        match outcome.measured() {
            Some(path) => table.rows.push(row(way.arrow(), path)),
            // Without an agent nobody asked for the directions by themselves.
            None if section.echo.measured().is_some() && !matches!(outcome, Outcome::Failed(_)) => {}
            None => {
                let mut cells = vec![way.arrow().to_owned(), cell(outcome, |_| String::new())];
                cells.resize(width, String::new());
                table.rows.push(cells);
            }
        }
    }
    table.rows.extend(section.echo.measured().map(|echo| row(ECHO, &echo.path)));
    view.table(table);
    if let Some(echo) = section.echo.measured() {
        view.facts(mtu_parts::echo(echo));
    }
    for (name, path) in paths(section) {
        if let Some(change) = path.change {
            view.note(
                Tone::Warning,
                format!(
                    "{name}: the path changed while it was probed: packets of {} bytes passed at first, {} since {}.",
                    change.from, change.to, change.at_us
                ),
            );
        }
    }
    if document.plan.local {
        view.note(Tone::Plain, "Over loopback no packet is larger than what the system allows itself.");
    }
}

/// The end whose own interface is what a path's silence comes from, and its MTU: both are in one subnet, and what passes is what
/// that interface takes, with some room for tags.
fn receiver(document: &Document, name: &str, path: &PathMtu) -> Option<(Role, Mtu)> {
    const ROOM: u32 = 18;
    let links = document.measurements.link.measured()?;
    let takes = |mtu: Mtu| mtu < path.ceiling && (mtu.0..=mtu.0.saturating_add(ROOM)).contains(&path.mtu.0);
    let direct = path.location.measured().is_none_or(|location| location.hops.is_empty());
    if !direct || path.limited_by != Limiter::Silent {
        return None;
    }
    if name == ECHO {
        // The answers' fragments have the size of the interface that sends them, where no router may be that.
        let echo = document.measurements.mtu.measured()?.echo.measured()?;
        let near = links.pc.measured()?.gateway.measured().is_some_and(Option::is_none);
        return echo.reply_fragment.filter(|piece| near && takes(*piece)).map(|piece| (Role::Nas, piece));
    }
    let way = Direction::BOTH.into_iter().find(|way| way.arrow() == name)?;
    let top = links.of(way.receiver()).measured()?.top()?;
    let mtu = top.mtu.measured()?.value;
    takes(mtu).then_some((way.receiver(), mtu))
}

fn limiter(document: &Document, name: &str, path: &PathMtu) -> String {
    if let Some((role, mtu)) = receiver(document, name, path) {
        return format!("the {}'s interface, whose MTU is {mtu}", role.title());
    }
    match &path.limited_by {
        Limiter::LocalInterface => "the sender's interface".to_owned(),
        Limiter::Router { address, next_hop_mtu } if path.is_told() => format!("router {address}, which says {next_hop_mtu}"),
        Limiter::Router { address, next_hop_mtu } => format!("router {address}, which wrongly says {next_hop_mtu}"),
        Limiter::Silent => "silence: larger packets vanish".to_owned(),
    }
}

/// What routers said, and what is wrong with it.
fn words(paths: &[(&str, &PathMtu)], view: &mut View) {
    let mut table = Table::new(&["direction", "router", "refused", "says that fit", "that is"]);
    for (name, path) in paths {
        table.rows.extend(path.words.iter().map(|word| {
            vec![
                (*name).to_owned(),
                word.address.to_string(),
                format!("{} bytes", word.about),
                word.next_hop_mtu.to_string(),
                judged(word, path.mtu),
            ]
        }));
    }
    view.table(table);
}

fn judged(word: &RouterWord, passes: Mtu) -> String {
    match word.lie() {
        Some(WordFault::Zero) => "no size at all".to_owned(),
        Some(WordFault::NotSmaller) => "not true: the refused packet would have fitted".to_owned(),
        Some(WordFault::BelowLeast) => "not true: less than every link must carry".to_owned(),
        None if word.next_hop_mtu == passes => "true".to_owned(),
        None if word.next_hop_mtu < passes => format!("too little: {passes} pass"),
        None => format!("not all: only {passes} pass"),
    }
}

/// Hop by hop, how far large packets come.
fn location(document: &Document, name: &str, path: &PathMtu, view: &mut View) {
    let Some(location) = path.location.measured() else { return };
    if location.hops.is_empty() {
        if location.peer_at == Some(1) {
            let who = match receiver(document, name, path) {
                Some((role, mtu)) => format!("and the {}'s interface, whose MTU is {mtu},", role.title()),
                None => "so a switch, a cable or one of the two hosts".to_owned(),
            };
            view.note(
                Tone::Plain,
                format!("{name}: no router lies between the hosts, {who} keeps packets of {} bytes back.", location.size),
            );
        }
        return;
    }
    let mut table = Table::new(&[name, "router", "RTT", "small packets", &format!("{} bytes", location.size)]);
    for hop in location.hops.iter().take(MAX_HOPS) {
        let known = hop.address.map(|address| address.to_string());
        table.rows.push(vec![
            format!("hop {}", hop.ttl),
            known.clone().unwrap_or_else(|| "does not answer".to_owned()),
            hop.rtt_us.map(|rtt| rtt.to_string()).unwrap_or_default(),
            if known.is_some() { "arrive".to_owned() } else { String::new() },
            if hop.large_arrived { "arrive" } else { "do not arrive" }.to_owned(),
        ]);
    }
    if let Some(at) = location.peer_at {
        let download = name == Direction::Download.arrow();
        let end = if download { Role::Pc } else { Role::Nas };
        let large = if location.reached >= at { "arrive" } else { "do not arrive" };
        let address =
            document.measurements.link.measured().and_then(|links| links.of(end.peer()).measured()).map(|link| link.peer);
        let address = address.map(|address| format!(" ({address})")).unwrap_or_default();
        table.rows.push(vec![
            format!("hop {at}"),
            format!("the {}{address}", end.title()),
            path.rtt_us.map(|rtt| rtt.to_string()).unwrap_or_default(),
            "arrive".to_owned(),
            large.to_owned(),
        ]);
    }
    view.table(table);
}

/// The MTU of each layer of each host, where they differ or where nothing else was asked for.
fn layers(document: &Document) -> Vec<(String, String)> {
    let Some(links) = document.measurements.link.measured() else { return Vec::new() };
    let stacks: Vec<_> = ENDS.iter().filter_map(|role| Some((role, &links.of(*role).measured()?.stack))).collect();
    let sizes = stacks.iter().flat_map(|(_, stack)| stack.iter()).filter_map(|layer| layer.mtu.measured());
    let (least, most) = sizes.fold((u32::MAX, 0), |(least, most), fact| (least.min(fact.value.0), most.max(fact.value.0)));
    if least >= most && !document.plan.scope.is_mtu() {
        return Vec::new();
    }
    let told = stacks.iter().map(|(role, stack)| {
        let layers =
            stack.iter().take(16).map(|layer| format!("{} {}", layer.name, cell(&layer.mtu, |fact| fact.value.to_string())));
        (format!("{} interfaces' MTU", role.title()), layers.collect::<Vec<_>>().join(" on "))
    });
    told.collect()
}

/// What the interfaces counted while packets were tried.
fn counters(section: &MtuSection, view: &mut View) {
    let mut table = Table::new(&["during", "interface", "errors and drops"]);
    for role in ENDS {
        let counted = section.counters(role).measured();
        table.rows.extend(counted.into_iter().flat_map(|all| counter_rows("the search", role, all)));
    }
    if table.rows.is_empty() && ENDS.iter().all(|role| section.counters(*role).measured().is_some_and(|all| !all.is_empty())) {
        view.note(Tone::Plain, "No errors or drops were counted at the interfaces while packets were tried.");
    }
    view.table(table);
}
