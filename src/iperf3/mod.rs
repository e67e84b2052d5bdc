//! iperf3's wire: our client against any iperf3 server, and a server that any iperf3 client can use.
