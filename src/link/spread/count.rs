//! How many connections reach all ports when the hash is as good as random.

/// The chance at which "all ports carry one" counts as reached.
const CHANCE: f64 = 0.90;
/// More ports than these are not counted: the bonding driver knows no more than a switch aggregates, 8 or 16.
const PORTS: u32 = 64;
/// 64 ports need 409 connections.
const FLOWS: u32 = 1024;

/// The smallest number of connections with which each of `ports` ports carries at least one with a chance of 90 %.
///
/// The collector's problem by inclusion and exclusion: of `k` ports none is missed by `n` connections with the chance
/// `Σ (−1)^j · C(k, j) · (1 − j/k)^n` over `j` from 0 to `k`. Two ports need 5, three 9, four 13. None for no port, or more than 64.
pub fn flows_for_all(ports: u32) -> Option<u32> {
    if !(1..=PORTS).contains(&ports) {
        return None;
    }
    (ports..=FLOWS).find(|flows| all_hit(ports, *flows) >= CHANCE)
}

/// The same chance, counted step by step: how likely it is that so many ports carry something. It adds only positive numbers, where the
/// alternating sum loses its digits at many ports.
fn all_hit(ports: u32, flows: u32) -> f64 {
    let all = f64::from(ports);
    let mut chances = vec![0.0; ports as usize + 1];
    if let Some(none) = chances.first_mut() {
        *none = 1.0;
    }
    for _ in 0..flows {
        let mut next = vec![0.0; chances.len()];
        for ((used, chance), number) in chances.iter().enumerate().zip(0..=ports) {
            let again = f64::from(number) / all;
            if let Some(same) = next.get_mut(used) {
                *same += chance * again;
            }
            if let Some(more) = next.get_mut(used + 1) {
                *more += chance * (1.0 - again);
            }
        }
        chances = next;
    }
    chances.last().copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula of the doc comment as it stands.
    fn by_inclusion_and_exclusion(ports: u32, flows: u32) -> f64 {
        let (k, mut binomial, mut sum) = (f64::from(ports), 1.0, 0.0);
        for j in 0..=ports {
            let sign = if j % 2 == 0 { 1.0 } else { -1.0 };
            sum += sign * binomial * (1.0 - f64::from(j) / k).powi(flows as i32);
            binomial *= f64::from(ports - j) / f64::from(j + 1);
        }
        sum
    }

    #[test]
    fn few_ports_need_the_known_numbers() {
        for (ports, flows) in [(0, None), (1, Some(1)), (2, Some(5)), (3, Some(9)), (4, Some(13)), (65, None)] {
            assert_eq!(flows_for_all(ports), flows, "{ports} ports");
        }
    }

    #[test]
    fn the_steps_give_what_the_formula_gives() {
        for ports in 1..=8 {
            for flows in 1..=60 {
                let (steps, formula) = (all_hit(ports, flows), by_inclusion_and_exclusion(ports, flows));
                assert!((steps - formula).abs() < 1e-9, "{ports} ports, {flows} connections: {steps} and {formula}");
            }
        }
    }

    #[test]
    fn more_ports_need_more_connections_and_an_answer_is_found_for_all() {
        let numbers: Vec<u32> = (1..=PORTS).map(|ports| flows_for_all(ports).expect("within the bound")).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    }
}
