//! The names that sample people have.

/// First names; their number is prime.
pub const FIRST: [&str; 79] = [
    "Anna", "Jan", "Maria", "Peter", "Sofia", "Lukas", "Emma", "Jonas", "Clara", "Felix", "Zoë",
    "Søren", "Chloé", "José", "Łucja", "Jürgen", "Inês", "Björn", "Élodie", "Aino", "Olivia",
    "Noah", "Amelia", "Oscar", "Isla", "Harry", "Ava", "George", "Freya", "Arthur", "Agnes",
    "Mikkel", "Ida", "Rasmus", "Karen", "Nikolaj", "Astrid", "Emil", "Camille", "Louis", "Manon",
    "Hugo", "Lucie", "Théo", "Juliette", "Gabriel", "Zofia", "Antoni", "Maja", "Jakub", "Hanna",
    "Szymon", "Lena", "Filip", "Beatriz", "Tiago", "Leonor", "Duarte", "Matilde", "Afonso",
    "Helmi", "Eino", "Lilja", "Onni", "Venla", "Väinö", "Paul", "Marie", "Leon", "Mia", "Finn",
    "Greta", "Moritz", "Johanna", "Anton", "Frieda", "Samuel", "Nina", "David",
];

/// Last names; their number is prime.
pub const LAST: [&str; 97] = [
    "Weber",
    "Jensen",
    "Martin",
    "Kowalski",
    "Smith",
    "Silva",
    "Korhonen",
    "Müller",
    "Meier",
    "Nielsen",
    "Bernard",
    "Nowak",
    "Jones",
    "Santos",
    "Virtanen",
    "Schmidt",
    "Keller",
    "Hansen",
    "Dubois",
    "Wiśniewski",
    "Taylor",
    "Ferreira",
    "Mäkinen",
    "Schneider",
    "Huber",
    "Pedersen",
    "Thomas",
    "Wójcik",
    "Brown",
    "Pereira",
    "Nieminen",
    "Fischer",
    "Steiner",
    "Andersen",
    "Robert",
    "Kowalczyk",
    "Williams",
    "Oliveira",
    "Mäkelä",
    "Wagner",
    "Brunner",
    "Sørensen",
    "Richard",
    "Kamiński",
    "Wilson",
    "Costa",
    "Hämäläinen",
    "Becker",
    "Frei",
    "Larsen",
    "Petit",
    "Lewandowski",
    "Johnson",
    "Rodrigues",
    "Laine",
    "Hoffmann",
    "Gerber",
    "Rasmussen",
    "Durand",
    "Zieliński",
    "Davies",
    "Martins",
    "Heikkinen",
    "Koch",
    "Graf",
    "Jørgensen",
    "Leroy",
    "Szymański",
    "Robinson",
    "Fernandes",
    "Koskinen",
    "Bauer",
    "Baumann",
    "Petersen",
    "Moreau",
    "Woźniak",
    "Wright",
    "Gonçalves",
    "Järvinen",
    "Richter",
    "Zimmermann",
    "Madsen",
    "Simon",
    "Dąbrowski",
    "Thompson",
    "Gomes",
    "Lehtonen",
    "Wolf",
    "Moser",
    "Kristensen",
    "Laurent",
    "Kozłowski",
    "Evans",
    "Lopes",
    "Lehtinen",
    "Vogel",
    "Roth",
];

/// A name in lower-case ASCII, for an account's name or a mail address.
pub fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for letter in name.chars().flat_map(char::to_lowercase) {
        match letter {
            'a'..='z' | '0'..='9' => plain.push(letter),
            'ä' | 'æ' => plain.push_str("ae"),
            'ö' | 'ø' => plain.push_str("oe"),
            'ü' => plain.push_str("ue"),
            'å' => plain.push_str("aa"),
            'ą' => plain.push('a'),
            'ć' | 'ç' => plain.push('c'),
            'é' | 'è' | 'ê' | 'ë' | 'ę' => plain.push('e'),
            'í' => plain.push('i'),
            'ł' => plain.push('l'),
            'ń' => plain.push('n'),
            'ó' => plain.push('o'),
            'ś' => plain.push('s'),
            'ź' | 'ż' => plain.push('z'),
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_letter_is_lost_and_no_two_names_become_one() {
        for names in [&FIRST[..], &LAST[..]] {
            let plain_names: HashSet<String> = names.iter().map(|name| plain(name)).collect();
            assert_eq!(plain_names.len(), names.len());
            for name in names {
                assert!(plain(name).len() >= name.chars().count(), "{name}");
                let rest = (2..names.len()).all(|n| names.len() % n != 0);
                assert!(rest, "their number is not prime");
            }
        }
    }
}
