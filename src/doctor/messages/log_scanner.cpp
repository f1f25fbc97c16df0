#include "doctor/messages/log_scanner.h"

#include <algorithm>
#include <string>

#include "doctor/messages/clean_line.h"
#include "doctor/messages/line_splitter.h"
#include "doctor/messages/log_filter.h"
#include "doctor/messages/memory_samples.h"
#include "doctor/messages/message_block.h"
#include "doctor/messages/message_hints.h"
#include "doctor/messages/phase.h"
#include "doctor/messages/traceback.h"

namespace headroom::doctor {
namespace {

constexpr size_t kBlockLines = 256, kSplit = 224;  // lines read together; messages start in the first kSplit
constexpr size_t kLongLine = 8 << 10;              // of longer lines, only the text around hits is read
constexpr size_t kBefore = 512, kAfter = 5 << 10;  // bytes read before and after a hit in a long line
constexpr int64_t kEveryMessage = 16'384;          // messages until only every second block is read, then every fourth
constexpr int64_t kQuiet = 8;                      // ordinary lines after which no lines are skipped
constexpr int64_t kEverySample = 65'536;           // sample lines read before the stride doubles

}  // namespace

class LogScanner::State {
 public:
  // `every_line`: read lines without a filter word too.
  explicit State(bool every_line = false)
      : filter_(log_filter()), splitter_([this](const RawLine& line) { on_line(line); }), every_line_(every_line) {}

  void feed(std::string_view piece) {
    report_.bytes += static_cast<int64_t>(piece.size());
    if (!every_line_) keep(piece);
    splitter_.feed(piece);
  }

  LogReport finish() {
    splitter_.finish();
    read_block(block_.size());
    // A short log without a message is read again, all lines of it.
    if (report_.messages.empty() && !every_line_ && tail_.empty()) read_again();
    report_.resources = resources_.resources();
    std::optional<int64_t> capacity;
    for (const Message& message : report_.messages) {
      if (message.capacity_bytes && !capacity) capacity = message.capacity_bytes;
    }
    report_.growth = analyse_growth(samples_.longest(), capacity);
    report_.excerpt = head_ + (tail_.empty() ? "" : "\n") + tail_;
    return std::move(report_);
  }

 private:
  // Keeps the log's first kExcerpt bytes and its last ones.
  void keep(std::string_view piece) {
    const size_t taken = std::min(piece.size(), LogScanner::kExcerpt - head_.size());
    head_.append(piece.substr(0, taken));
    piece.remove_prefix(taken);
    if (piece.size() > LogScanner::kExcerpt) piece.remove_prefix(piece.size() - LogScanner::kExcerpt);
    tail_.append(piece);
    if (tail_.size() > LogScanner::kExcerpt) tail_.erase(0, tail_.size() - LogScanner::kExcerpt);
  }

  // The filter's words may be broken by colours, extra spaces or a narrow terminal; squeezed text shows them.
  void read_again() {
    State again(true);
    again.feed(head_);
    LogReport report = again.finish();
    report_.messages = std::move(report.messages);
    report_.messages_dropped = report.messages_dropped;
  }

  void on_line(const RawLine& line) {
    report_.lines = line.number;
    const uint32_t tags = filter_.tags(line.text) | (every_line_ ? kMessage : 0u);
    if (tags != 0 || code_rank_ || resources_.wants_more()) side_readers(line, tags);
    if (line.text.size() > kLongLine) {
      if ((tags & kMessage) != 0) long_line(line);
    } else if ((tags & kMessage) != 0 && unread_ > 0) {
      --unread_;
      ++report_.lines_unread;
      block_end_ = line.number;  // do not read it as the line before a hit either
      quiet_ = 0;
    } else if (collecting_ || (tags & kMessage) != 0) {
      // A message may start at the end of the line before its first filter word.
      if (!collecting_ && previous_number_ > block_end_) append(previous_, previous_number_, false);
      append(line.text, line.number, (tags & kMessage) != 0);
    }
    if ((tags & kMessage) == 0 && ++quiet_ > kQuiet) unread_ = 0;  // something else follows: stop skipping
    previous_.assign(line.text.substr(0, 1024));
    previous_number_ = line.number;
  }

  // Frames, resources and samples are read line by line.
  void side_readers(const RawLine& line, uint32_t tags) {
    if ((tags & kEvent) != 0) samples_.event();
    const uint32_t own = tags & (kFrame | kTraceback | kResource | kSample);
    const bool table = resources_.wants_more();
    if (own == 0 && !code_rank_ && !table) return;
    if (own == kSample && !code_rank_ && !table && !next_sample()) return;
    std::vector<CleanLine> lines;
    clean_lines(line.text, lines);
    for (const CleanLine& clean : lines) {
      const int rank = clean.rank.value_or(-1);
      if (code_rank_ || (tags & (kFrame | kTraceback)) != 0) frame_line(clean.text, rank, line.number);
      if (table || (tags & kResource) != 0) resource_line(clean.text);
      if ((tags & kSample) != 0) {
        if (const auto sample = memory_sample(clean.text)) samples_.add(rank, *sample);
      }
    }
  }

  // Whether to read this sample line: the longer the log, the fewer are read.
  bool next_sample() {
    if (++sample_lines_ % sample_stride_ != 0) return false;
    if (++samples_read_ % kEverySample == 0) sample_stride_ *= 2;
    return true;
  }

  void frame_line(const std::string& text, int rank, int64_t number) {
    if (auto frame = parse_frame(text)) {
      frames_.add(rank, number, std::move(*frame));
      code_rank_ = rank;
      return;
    }
    if (code_rank_ && *code_rank_ == rank) frames_.set_code(rank, text);
    code_rank_.reset();
    if (text.find("Traceback (most") != std::string::npos) frames_.begin_traceback(rank);
  }

  void resource_line(const std::string& text) {
    std::vector<CleanLine> before;
    clean_lines(previous_, before);
    resources_.line(text, before.empty() ? std::string_view() : std::string_view(before.back().text));
    if (const GpuUsage* gpu = resources_.updated_gpu(); gpu != nullptr && gpu->used_bytes) {
      MemorySample sample;
      sample.step = -1;
      sample.bytes = *gpu->used_bytes;
      samples_.add(SampleStore::kGpu + gpu->index, sample);
    }
  }

  // A line of more than kLongLine bytes, or a part of one. Reads only windows around its hits; they do not overlap, so
  // that no message is read twice.
  void long_line(const RawLine& line) {
    const size_t end = line.more ? line.text.size() - LineSplitter::kOverlap : line.text.size();
    size_t done = 0;
    for (auto hit = filter_.next(line.text, 0); hit.position < end;) {
      size_t from = hit.position + 1;
      if ((hit.tag & kMessage) != 0) {
        const size_t start = std::max(done, hit.position > kBefore ? hit.position - kBefore : 0);
        done = std::min(hit.position + kAfter, line.text.size());
        append(line.text.substr(start, done - start), line.number, true);
        from = done;
      }
      hit = filter_.next(line.text, from);
    }
  }

  void append(std::string_view raw, int64_t number, bool hit) {
    std::vector<CleanLine> lines;
    clean_lines(raw, lines);
    for (CleanLine& clean : lines) {
      block_.push_back({std::move(clean.text), clean.rank.value_or(-1), number, hit});
      since_hit_ = hit ? 0 : since_hit_ + 1;
      if (since_hit_ > kBlockLines - kSplit) {
        read_block(block_.size());
      } else if (block_.size() >= kBlockLines) {
        read_block(block_stride_ == 1 ? kSplit : kBlockLines);
      }
    }
    collecting_ = !block_.empty();
  }

  void read_block(size_t split) {
    read_messages(block_, split, [this](Message message) { receive(std::move(message)); });
    const auto kept = block_.begin() + static_cast<std::ptrdiff_t>(std::min(split, block_.size()));
    if (!block_.empty()) block_end_ = block_.back().line;
    block_.erase(block_.begin(), kept);
    if (std::none_of(block_.begin(), block_.end(), [](const BlockLine& line) { return line.hit; })) block_.clear();
    collecting_ = !block_.empty();
    unread_ = static_cast<int64_t>(kBlockLines) * (block_stride_ - 1);
  }

  void receive(Message message) {
    if (++received_ % kEveryMessage == 0) block_stride_ *= 2;
    message.frames = frames_.take(message.rank.value_or(-1), message.line);
    if (message.phase == "unknown") {
      Phase phase = phase_of(message.frames);
      message.phase = std::move(phase.name);
      message.phase_evidence = std::move(phase.evidence);
    }
    add_hints(message);
    for (Message& known : report_.messages) {
      if (!same_message(known, message)) continue;
      ++known.repeats;
      return;
    }
    if (joins_its_title(message)) return;
    if (!report_.messages.empty() && continues(report_.messages.back(), message)) return;
    if (report_.messages.size() >= kMessages) {
      ++report_.messages_dropped;
    } else {
      report_.messages.push_back(std::move(message));
    }
  }

  // Of a message and a shorter one of the same failure only the fuller is kept. True: that is the one known before.
  bool joins_its_title(Message& message) {
    const auto known = std::find_if(report_.messages.begin(), report_.messages.end(), [&](const Message& each) {
      return one_is_fuller(each, message) || is_bare_title(each, message);
    });
    if (known == report_.messages.end()) return false;
    if (only_requests(message)) {
      take_shorter(*known, message);
      return true;
    }
    if (is_bare_title(*known, message)) known->repeats = 0;  // words above it, not the message itself
    take_shorter(message, *known);
    report_.messages.erase(known);
    return false;
  }

  const WordScan& filter_;
  LineSplitter splitter_;
  FrameStore frames_;
  ResourceReader resources_;
  SampleStore samples_;
  LogReport report_;
  std::vector<BlockLine> block_;
  size_t since_hit_ = 0;  // lines of the block after its last hit
  bool every_line_;
  std::string head_, tail_;  // the log's first bytes, and the last bytes of the rest
  std::string previous_;
  int64_t previous_number_ = 0;
  int64_t block_end_ = 0;  // last line that was in a block or skipped
  int64_t sample_lines_ = 0, samples_read_ = 0, sample_stride_ = 1;
  int64_t received_ = 0, block_stride_ = 1;
  int64_t quiet_ = 0;   // ordinary lines since the last skipped one
  int64_t unread_ = 0;  // suspicious lines to skip before the next block
  bool collecting_ = false;
  std::optional<int> code_rank_;  // a frame was read: the next line of this rank may be its source
};

LogScanner::LogScanner() : state_(std::make_unique<State>()) {}
LogScanner::~LogScanner() = default;
LogScanner::LogScanner(LogScanner&&) noexcept = default;
LogScanner& LogScanner::operator=(LogScanner&&) noexcept = default;

void LogScanner::feed(std::string_view piece) { state_->feed(piece); }
LogReport LogScanner::finish() { return state_->finish(); }

LogReport scan_log(std::string_view text) {
  LogScanner scanner;
  scanner.feed(text);
  return scanner.finish();
}

}  // namespace headroom::doctor
