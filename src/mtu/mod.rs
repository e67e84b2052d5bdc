//! The largest packet that passes from one end to the other, to the byte and for each direction alone.
mod packet;
mod search;
