//! net, to be filled.
