// model.safetensors.index.json: which file of a checkpoint holds which tensor.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace headroom {

// Calls entry(tensor, file) for each entry of the index's weight_map, in its order; a file is a plain name of a file
// beside the index. The index is read piece by piece: nothing of it is kept. Throws Error(format) naming index and
// entry for anything else, for an index above 100 MB and for one without entries.
using IndexEntry = std::function<void(const std::string& tensor, const std::string& file)>;
void read_safetensors_index(const std::filesystem::path& index, const IndexEntry& entry);

// The files that it names, each once, sorted. Throws Error(format) for more than 4096.
std::vector<std::string> files_of_index(const std::filesystem::path& index);

}  // namespace headroom
