#include "doctor/answer/intake.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "base/error.h"
#include "doctor/answer/posted_config.h"
#include "doctor/config/setting.h"
#include "doctor/remedies/told_stage.h"
#include "doctor/snapshot/read_snapshot.h"
#include "formats/file.h"
#include "formats/pickle_reader.h"

namespace headroom::doctor {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPiece = size_t{1} << 20;    // a log is read in pieces of this size
constexpr size_t kShort = size_t{256} << 10;  // up to this size, a text whose name has no suffix may be a configuration
constexpr size_t kLargestSnapshot = size_t{2} << 30;

bool has_suffix(const std::string& name, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(), [&](std::string_view suffix) { return name.ends_with(suffix); });
}

bool named_as_config(const std::string& name) {
  return has_suffix(name, {".yaml", ".yml", ".json", ".py", ".ipynb", ".sh", ".sbatch", ".slurm", ".bash"});
}

// Reads a short text whole. Of a longer one, reads the first piece and leaves the rest in the stream.
std::string read_head(std::istream& in, size_t limit) {
  std::string head(limit, '\0');
  in.read(head.data(), static_cast<std::streamsize>(limit));
  head.resize(static_cast<size_t>(std::max<std::streamsize>(0, in.gcount())));
  return head;
}

// Ollama's Modelfile: lines of FROM and PARAMETER.
bool is_modelfile(const std::string& text) {
  const std::string lines = "\n" + lower(text);
  return lines.find("\nfrom ") != std::string::npos && lines.find("\nparameter ") != std::string::npos;
}

// A person's words beside a command or a script.
bool tells_of_failure(const std::string& text) {
  bool told = false;
  each_sentence(text, [&](std::string_view sentence) {
    told = !told_killed(sentence).empty() || !told_out_of_memory(sentence).empty();
    return told;
  });
  return told;
}

std::vector<std::string> rows_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else if (c != '\r')
      lines.back() += c;
  }
  return lines;
}

class Reader {
 public:
  explicit Reader(std::istream& standard_input) : standard_input_(standard_input) {}

  void config(const std::string& name, int64_t row) {
    if (!has_suffix(name, {".jsonl"})) {
      configs_.files.emplace_back(name);
      return;
    }
    const std::vector<std::string> lines = rows_of(read_text_file(name));
    const auto rows = std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return !line.empty(); });
    int64_t at = 0;
    std::string only;  // other rows become empty lines, so that errors give the right line number
    for (const std::string& line : lines) only += (!line.empty() && ++at == row ? line : "") + "\n";
    std::vector<ConfigReading> readings;
    if (row >= 1 && row <= rows) readings = read_config_rows(name, only);
    if (readings.empty())
      throw Error(ErrorKind::usage, fmt::format("--row {}: {} has {} rows", row, name, rows),
                  "rows are counted from 1");
    row_ = std::move(readings.front());
    row_->notes.push_back(fmt::format("row {} of {}; --row chooses another", row, rows));
  }

  void input(const std::string& name, int64_t row) {
    if (name == "-") return stream(standard_input_, "standard input");
    std::error_code status;
    if (fs::is_directory(name, status))
      throw Error(ErrorKind::usage, fmt::format("{} is a folder", name), "give a log, a configuration, or - for stdin");
    if (named_as_config(name) || has_suffix(name, {".jsonl"})) {
      if (read_probe_file(name)) return;
      return config(name, row);
    }
    std::ifstream file(name, std::ios::binary);
    if (!file) throw Error(ErrorKind::usage, fmt::format("cannot read {}", name), "check the path and its permissions");
    stream(file, name);
  }

  void command(const std::vector<std::string>& words) { configs_.arguments = words; }

  Intake finish() {
    Intake intake;
    intake.log = scanner_.finish();
    intake.has_log = logs_ > 0;
    if (row_)
      intake.config = std::move(row_);
    else if (!configs_.files.empty() || !configs_.texts.empty() || !configs_.arguments.empty())
      read_configs(intake);
    else
      read_config_of_log(intake);
    intake.probe = std::move(probe_);
    intake.snapshots = std::move(snapshots_);
    intake.sources = std::move(sources_);
    if (intake.config)
      for (const SourceRead& source : intake.config->sources) {
        intake.sources.push_back(fmt::format("{}: {} bytes", source.name, source.text.size()));
        intake.setup += source.text + "\n";
      }
    if (intake.quoted)
      for (const SourceRead& source : intake.quoted->sources) intake.sources.push_back(source.name);
    intake.setup = lower(intake.setup + text_);
    return intake;
  }

 private:
  // Uses the command of the failed program and the configurations that the log has.
  void read_config_of_log(Intake& intake) {
    PostedConfig posted = posted_config(intake.log);
    intake.missing = std::move(posted.missing);
    if (posted.command && posted.config) sources_.push_back("the command in the log");
    intake.config_is_quoted = posted.whole && posted.quoted;
    (posted.whole ? intake.config : intake.quoted) = std::move(posted.config);
  }

  // A file that no reader accepts is kept as text: its words may still show what happened.
  void read_configs(Intake& intake) {
    try {
      intake.config = read_config(configs_);
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::format) throw;
      intake.unread = std::current_exception();
    }
    ConfigInput readable;
    for (const fs::path& file : configs_.files) {
      try {
        read_config_file(file);
        readable.files.push_back(file);
      } catch (const Error&) {
        intake.setup += read_text_file(file) + "\n";
        sources_.push_back(fmt::format("{}: as text", file.string()));
      }
    }
    for (const std::string& word : configs_.arguments) intake.setup += word + " ";
    readable.texts = configs_.texts;
    if (!readable.files.empty() || !readable.texts.empty()) intake.config = read_config(readable);
  }

  // Whether the file is output of the probe, whatever its suffix.
  bool read_probe_file(const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    return file && read_probe_text(read_head(file, kShort), name);
  }

  bool read_probe_text(const std::string& text, const std::string& name) {
    if (text.find("\"peak_bytes\"") == std::string::npos || text.find("\"batch\"") == std::string::npos) return false;
    probe_ = read_probe(text, name);
    sources_.push_back(fmt::format("{}: {} measured batch sizes", name, probe_.size()));
    return true;
  }

  void stream(std::istream& in, const std::string& name) {
    std::string piece = read_head(in, kPiece);
    if (looks_like_pickle(piece)) return snapshot(std::move(piece), in, name);
    if (piece.size() <= kShort && (read_probe_text(piece, name) || is_config(piece, name) || as_text(piece, name)))
      return;
    ++logs_;
    int64_t bytes = 0;
    while (!piece.empty()) {
      bytes += static_cast<int64_t>(piece.size());
      scanner_.feed(piece);
      piece = in ? read_head(in, kPiece) : std::string();
    }
    scanner_.feed("\n");
    sources_.push_back(fmt::format("{}: {}", name, format_bytes(bytes)));
  }

  void snapshot(std::string bytes, std::istream& in, const std::string& name) {
    while (in) {
      bytes += read_head(in, kPiece);
      if (bytes.size() > kLargestSnapshot)
        throw Error(ErrorKind::format, fmt::format("{} is larger than {}", name, format_bytes(kLargestSnapshot)),
                    "record fewer events: torch.cuda.memory._record_memory_history(max_entries=100000)");
    }
    snapshots_.push_back(analyse_snapshot(read_snapshot(bytes, name)));
    sources_.push_back(
        fmt::format("{}: a memory snapshot of {}", name, format_bytes(static_cast<int64_t>(bytes.size()))));
  }

  // A short text without memory messages that a reader accepts is a configuration.
  bool is_config(const std::string& text, const std::string& name) {
    if (text.empty() || text.find('\0') != std::string::npos || !scan_log(text).messages.empty()) return false;
    if (tells_of_failure(lower(text))) return false;
    try {
      read_config_text(name, text);
    } catch (const Error&) {
      return false;
    }
    configs_.texts.push_back({name, text});
    return true;
  }

  // A text that is neither a log nor a configuration that doctor reads (Ollama's Modelfile).
  bool as_text(const std::string& text, const std::string& name) {
    if (!is_modelfile(text) || !scan_log(text).messages.empty()) return false;
    text_ += text + "\n";
    sources_.push_back(fmt::format("{}: as text", name));
    return true;
  }

  std::istream& standard_input_;
  std::string text_;  // the texts that as_text() accepted
  LogScanner scanner_;
  ConfigInput configs_;
  std::optional<ConfigReading> row_;
  std::vector<ProbePoint> probe_;
  std::vector<SnapshotAnalysis> snapshots_;
  std::vector<std::string> sources_;
  int logs_ = 0;
};

}  // namespace

Intake read_inputs(const Request& request, std::istream& standard_input) {
  Reader reader(standard_input);
  for (const std::string& name : request.inputs) reader.input(name, request.row);
  for (const std::string& name : request.configs) reader.config(name, request.row);
  if (!request.command.empty()) reader.command(request.command);
  return reader.finish();
}

}  // namespace headroom::doctor
