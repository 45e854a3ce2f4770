//! A slab: values under numbers that are given out and taken back.

/// Values under numbers. A number that was given back last is given out next.
pub struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    pub fn new() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    pub fn used(&self) -> usize {
        self.places.len() - self.free.len()
    }

    #[inline]
    pub fn insert(&mut self, it: T) -> usize {
        match self.free.pop() {
            Some(index) => {
                self.places[index] = Some(it);
                index
            }
            None => {
                self.places.push(Some(it));
                self.places.len() - 1
            }
        }
    }

    /// Puts it where it was in another daemon.
    pub fn insert_at(&mut self, index: usize, it: T) {
        while self.places.len() <= index {
            self.free.push(self.places.len());
            self.places.push(None);
        }
        self.free.retain(|free| *free != index);
        self.places[index] = Some(it);
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.places.get(index)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.places.get_mut(index)?.as_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.places.iter().enumerate().filter_map(|(index, it)| Some((index, it.as_ref()?)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.places.iter_mut().enumerate().filter_map(|(index, it)| Some((index, it.as_mut()?)))
    }

    #[inline]
    pub fn remove(&mut self, index: usize) -> Option<T> {
        self.remove_if(index, |_| true)
    }

    #[inline]
    pub fn remove_if(&mut self, index: usize, is_it: impl FnOnce(&T) -> bool) -> Option<T> {
        let place = self.places.get_mut(index)?;
        let it = place.take_if(|it| is_it(it))?;
        self.free.push(index);
        Some(it)
    }
}
