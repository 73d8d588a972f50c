//! stub
pub(crate) struct LogFile;
impl LogFile {
    pub(crate) fn open(_: &std::path::Path, _: Vec<String>) -> Self { Self }
    pub(crate) fn error(&self, _: &str) {}
    pub(crate) fn info(&self, _: &str) {}
}
