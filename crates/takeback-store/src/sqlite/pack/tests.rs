#![expect(clippy::disallowed_methods, reason = "segments are damaged here as a crash would")]

use super::*;

fn blob(number: u64) -> PackedBlob {
    let mut contents = vec![0; 100];
    blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut contents);
    PackedBlob::new(contents)
}

#[track_caller]
fn assert_kept(packs: &Packs, blob: &PackedBlob, location: &Location) {
    assert_eq!(packs.read(location).unwrap().as_ref(), Some(&blob.bytes));
}

/// Every whole record of a segment, found without the database.
fn salvage(segment: &[u8]) -> Vec<Digest> {
    let record = |at: usize| {
        let (header, rest) = segment[at..].split_first_chunk::<HEADER>()?;
        let checksum = blake3::hash(&header[..49]);
        if header[..4] != MAGIC || header[49..] != checksum.as_bytes()[..4] {
            return None;
        }
        let digest = Digest(header[5..37].try_into().ok()?);
        let size = u64::from_le_bytes(header[37..45].try_into().ok()?);
        let length = u32::from_le_bytes(header[45..49].try_into().ok()?) as usize;
        let bytes = rest.get(..length)?.to_vec();
        let encoding = Encoding::from_byte(header[4])?;
        PackedBlob { digest, size, encoding, bytes }.unpack()?;
        Some((digest, at + HEADER + length))
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at < segment.len() {
        match record(at) {
            Some((digest, end)) => {
                found.push(digest);
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

#[test]
fn a_record_is_laid_out_as_documented() {
    let dir = tempfile::tempdir().unwrap();
    let mut packs = Packs::new(dir.path().to_owned());
    let blob = PackedBlob::new(b"hello".to_vec());
    packs.append(&blob).unwrap();
    packs.make_durable().unwrap();
    let mut expected = b"TkB1\0".to_vec();
    expected.extend(blob.digest.0);
    expected.extend([5, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([5, 0, 0, 0]);
    let checksum = blake3::hash(&expected);
    expected.extend(&checksum.as_bytes()[..4]);
    expected.extend(b"hello");
    assert_eq!(std::fs::read(dir.path().join("00000001.pack")).unwrap(), expected);
}

#[test]
fn a_full_segment_is_followed_by_another() {
    let dir = tempfile::tempdir().unwrap();
    let mut packs = Packs::new(dir.path().to_owned());
    packs.limit = 1000;
    let blobs: Vec<_> = (0..50).map(blob).collect();
    let record = HEADER as u64 + 100;
    for blob in &blobs {
        packs.append(blob).unwrap();
    }
    packs.make_durable().unwrap();
    assert_eq!(packs.held.len(), 50_usize.div_ceil((1000 / record) as usize));
    for segment in &packs.held {
        assert!(segment.file.metadata().unwrap().len() <= 1000);
    }
    let kept = packs.pending.clone();
    packs.mark_committed();
    for blob in &blobs {
        assert_kept(&packs, blob, &kept[&blob.digest]);
    }
    let large = PackedBlob { encoding: Encoding::Raw, bytes: vec![1; 5000], ..blob(99) };
    packs.append(&large).unwrap();
    assert_eq!(packs.pending[&large.digest].offset, 0, "more than a segment: one of its own");
}

#[test]
fn the_next_record_goes_after_a_torn_one() {
    // The second record torn in its header, and in its bytes.
    for torn in [160, 250] {
        let dir = tempfile::tempdir().unwrap();
        let mut packs = Packs::new(dir.path().to_owned());
        packs.append(&blob(1)).unwrap();
        packs.append(&blob(2)).unwrap();
        packs.make_durable().unwrap();
        let first = packs.pending[&blob(1).digest];
        drop(packs);
        let segment = dir.path().join("00000001.pack");
        OpenOptions::new().write(true).open(&segment).unwrap().set_len(torn).unwrap();

        let mut packs = Packs::new(dir.path().to_owned());
        packs.append(&blob(3)).unwrap();
        packs.make_durable().unwrap();
        let third = packs.pending[&blob(3).digest];
        assert_eq!((third.segment, third.offset), (1, torn));
        assert_kept(&packs, &blob(1), &first);
        assert_kept(&packs, &blob(3), &third);
        let kept = std::fs::read(&segment).unwrap();
        assert_eq!(salvage(&kept), [blob(1).digest, blob(3).digest]);
    }
}

#[test]
fn two_handles_never_append_to_one_segment() {
    let dir = tempfile::tempdir().unwrap();
    let mut one = Packs::new(dir.path().to_owned());
    let mut other = Packs::new(dir.path().to_owned());
    one.append(&blob(1)).unwrap();
    other.append(&blob(2)).unwrap();
    one.append(&blob(3)).unwrap();
    for packs in [&mut one, &mut other] {
        packs.make_durable().unwrap();
    }
    let segment = |packs: &Packs, number| packs.pending[&blob(number).digest].segment;
    assert_eq!((segment(&one, 1), segment(&other, 2), segment(&one, 3)), (1, 2, 1));
    // A discarded or committed segment is free again.
    other.mark_committed();
    drop(one);
    other.append(&blob(4)).unwrap();
    let mut third = Packs::new(dir.path().to_owned());
    third.append(&blob(5)).unwrap();
    assert_eq!((segment(&other, 4), segment(&third, 5)), (2, 1));
}

#[test]
fn a_failed_write_is_retried_in_full() {
    let dir = tempfile::tempdir().unwrap();
    let mut packs = Packs::new(dir.path().to_owned());
    packs.append(&blob(1)).unwrap();
    packs.make_durable().unwrap();
    packs.append(&blob(2)).unwrap();
    packs.append(&blob(3)).unwrap();
    // Part of the batch reaches the disk, then the disk is full.
    let path = packs.held[0].path.clone();
    let mut whole = OpenOptions::new().append(true).open(&path).unwrap();
    io::Write::write_all(&mut whole, b"TkB1 torn").unwrap();
    packs.held[0].file = File::open(&path).unwrap();
    assert!(matches!(packs.make_durable(), Err(StoreError::Io { .. })));
    for number in 1..4 {
        assert_kept(&packs, &blob(number), &packs.pending[&blob(number).digest]);
    }
    packs.held[0].file = whole;
    packs.make_durable().unwrap();
    let digests = [1, 2, 3].map(|number| blob(number).digest);
    for (number, digest) in (1..).zip(&digests) {
        assert_kept(&packs, &blob(number), &packs.pending[digest]);
    }
    assert_eq!(salvage(&std::fs::read(&path).unwrap()), digests);
}

#[test]
fn a_failed_sync_fails_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let mut packs = Packs::new(dir.path().to_owned());
    packs.append(&blob(1)).unwrap();
    packs.flush().unwrap();
    let (_, pipe) = io::pipe().unwrap();
    let unsyncable = File::from(std::os::fd::OwnedFd::from(pipe));
    let file = std::mem::replace(&mut packs.held[0].file, unsyncable);
    assert!(matches!(packs.make_durable(), Err(StoreError::Io { .. })));
    packs.held[0].file = file;
    assert!(matches!(packs.make_durable(), Err(StoreError::Io { .. })));
}

#[test]
fn a_location_outside_every_segment_reads_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut packs = Packs::new(dir.path().to_owned());
    packs.append(&blob(1)).unwrap();
    let good = packs.pending[&blob(1).digest];
    packs.make_durable().unwrap();
    packs.append(&blob(2)).unwrap();
    for bad in [
        Location { segment: 9, ..good },
        Location { offset: 100, ..good },
        Location { offset: u64::MAX, ..good },
        Location { length: u32::MAX, ..good },
        Location { offset: 154, ..good },
        Location { offset: 1 << 40, ..good },
    ] {
        assert_eq!(packs.read(&bad).unwrap(), None, "{bad:?}");
    }
}
