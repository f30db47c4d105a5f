// SPDX-License-Identifier: GPL-2.0-only
//! Reads a classic pcap file of Ethernet and IPv4 with pcap-parser and etherparse into columns;
//! connections are not told apart. Prints the number of TCP packets and the nanoseconds, reading
//! included.

use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TransportSlice};
use pcap_parser::{create_reader, PcapBlockOwned, PcapError};
use std::{env, fs::File, hint::black_box, time::Instant};

const CHUNK_PACKETS: usize = 1 << 16;

#[derive(Clone, Copy, Default)]
struct Row {
    time_ns: i64,
    frame_bytes: u32,
    payload_bytes: u32,
    seq: u32,
    ack: u32,
    ts_value: u32,
    ts_echo: u32,
    sack_left: u32,
    sack_right: u32,
    window: u16,
    ip_id: u16,
    flags: u16,
}

fn row(time_ns: i64, frame_bytes: u32, octets: &[u8]) -> Option<Row> {
    let packet = LaxSlicedPacket::from_ethernet(octets).ok()?;
    let (Some(LaxNetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) =
        (&packet.net, &packet.transport)
    else {
        return None;
    };
    let header = ip.header();
    let headers_bytes = u32::from(header.ihl()) * 4 + u32::from(tcp.data_offset()) * 4;
    let mut found = Row {
        time_ns,
        frame_bytes,
        payload_bytes: u32::from(header.total_len()).saturating_sub(headers_bytes),
        seq: tcp.sequence_number(),
        ack: tcp.acknowledgment_number(),
        window: tcp.window_size(),
        ip_id: header.identification(),
        flags: u16::from_be_bytes([tcp.slice()[12], tcp.slice()[13]]) & 0x1ff,
        ..Row::default()
    };
    for option in tcp.options_iterator().flatten() {
        match option {
            TcpOptionElement::Timestamp(value, echo) => {
                (found.ts_value, found.ts_echo) = (value, echo);
            }
            TcpOptionElement::SelectiveAcknowledgement((left, right), _) => {
                (found.sack_left, found.sack_right) = (left, right);
            }
            _ => {}
        }
    }
    Some(found)
}

fn main() {
    let began = Instant::now();
    let file = File::open(env::args().nth(1).expect("a capture")).expect("readable");
    let mut reader = create_reader(1 << 20, file).expect("a capture");
    let mut rows = Vec::with_capacity(CHUNK_PACKETS);
    let mut packets = 0;
    let mut tick_ns = 1000;
    loop {
        match reader.next() {
            Ok((size, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        tick_ns = if header.is_nanosecond_precision() { 1 } else { 1000 };
                    }
                    PcapBlockOwned::Legacy(record) => {
                        let time_ns = i64::from(record.ts_sec) * 1_000_000_000
                            + i64::from(record.ts_usec) * tick_ns;
                        if let Some(found) = row(time_ns, record.origlen, record.data) {
                            packets += 1;
                            rows.push(found);
                        }
                        if rows.len() == CHUNK_PACKETS {
                            black_box(&rows);
                            rows.clear();
                        }
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(size);
            }
            Err(PcapError::Incomplete(_)) => reader.refill().expect("readable"),
            Err(PcapError::Eof) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    black_box(&rows);
    println!("{packets} {}", began.elapsed().as_nanos());
}
