//! The floor: a TCP server that reads a message and writes one of the asked length.
//!
//! The first eight bytes of a message say its length and that of the answer (big-endian). A thread
//! a connection, blocking: no server that reads and writes a socket an operation costs less.

use crate::process::Process;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

const LENGTH_MAX: usize = 1 << 20;

/// Serves until killed; the first line of standard output is the address.
pub fn serve() -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|why| why.to_string())?;
    println!("{}", listener.local_addr().map_err(|why| why.to_string())?);
    for stream in listener.incoming().flatten() {
        thread::spawn(move || answer(stream));
    }
    Ok(())
}

fn answer(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut buffer = vec![0; LENGTH_MAX];
    let mut held = 0;
    loop {
        held += match stream.read(&mut buffer[held..]).ok()? {
            0 => return None,
            n => n,
        };
        if held < 8 {
            continue;
        }
        let length = |at: usize| {
            let bytes: [u8; 4] = buffer[at..at + 4].try_into().unwrap_or_default();
            (u32::from_be_bytes(bytes) as usize).min(LENGTH_MAX)
        };
        let (asked, wanted) = (length(0), length(4));
        if held >= asked {
            stream.write_all(&buffer[..wanted]).ok()?;
            held = 0;
        }
    }
}

/// A running echo server.
pub struct Echo {
    /// The process.
    pub process: Process,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Echo {
    /// Starts it as a process of its own, so that its time can be read apart.
    pub fn start() -> Result<Echo, String> {
        let this = std::env::current_exe().map_err(|why| why.to_string())?;
        let mut command = Command::new(this);
        command.arg("echo-server").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        let output = process.child().stdout.take().ok_or("the echo server has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map_err(|why| why.to_string())?;
        let address = line.trim().parse().map_err(|_| format!("no address: {line:?}"))?;
        Ok(Echo { process, address })
    }
}

/// A client of the echo that asks for answers of one length.
pub struct EchoClient {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl EchoClient {
    /// `request_bytes` and `answer_bytes`: as long as the messages they stand for.
    pub fn connect(
        address: SocketAddr,
        request_bytes: usize,
        answer_bytes: usize,
    ) -> Result<EchoClient, String> {
        let stream = TcpStream::connect(address).map_err(|why| why.to_string())?;
        stream.set_nodelay(true).map_err(|why| why.to_string())?;
        let mut request = vec![0; request_bytes.max(8)];
        request[..4].copy_from_slice(&(request_bytes.max(8) as u32).to_be_bytes());
        request[4..8].copy_from_slice(&(answer_bytes as u32).to_be_bytes());
        Ok(EchoClient { stream, request, answer: vec![0; answer_bytes] })
    }

    /// One message there and one back.
    pub fn exchange(&mut self) -> Result<(), String> {
        self.stream.write_all(&self.request).map_err(|why| why.to_string())?;
        self.stream.read_exact(&mut self.answer).map_err(|why| why.to_string())
    }
}
