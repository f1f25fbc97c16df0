#include "formats/append_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/atomic_dir.h"

namespace headroom {
namespace {

constexpr int64_t kWriteBack = int64_t{8} << 20;

}  // namespace

AppendFile::AppendFile(const std::filesystem::path& path) : path_(path), file_(File::create(temporary_beside(path))) {}

AppendFile::~AppendFile() {
  if (!kept_ && !path_.empty()) ::unlink(file_.path().c_str());
}

void AppendFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), buffer_.size() - used_);
    std::memcpy(buffer_.data() + used_, bytes.data(), n);
    used_ += n;
    bytes = bytes.subspan(n);
    if (used_ == buffer_.size()) flush();
  }
}

void AppendFile::flush() {
  file_.write_at(flushed_, std::span(buffer_).first(used_));
  flushed_ += static_cast<int64_t>(used_);
  used_ = 0;
  if (flushed_ - written_back_ < kWriteBack) return;
  file_.write_back(written_back_, flushed_ - written_back_);
  written_back_ = flushed_;
}

void AppendFile::keep() {
  flush();
  file_.sync();
  file_.close();
  rename_durably(file_.path(), path_);
  kept_ = true;
}

File AppendFile::take() {
  flush();
  return std::move(file_);
}

}  // namespace headroom
