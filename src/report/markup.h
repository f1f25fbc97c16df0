// Pieces of the page: escaped text, figures as people read them, tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/storage_spans.h"

namespace headroom::report {

// Text for element content and attribute values: markup escaped, control characters and broken UTF-8 replaced.
std::string escaped(std::string_view text);

// "1.20 s", "67 ms", "2:03:04".
std::string duration(double seconds);
// "layer 3", "layers 0 to 5", or nothing.
std::string layers(int32_t first, int32_t last);

// Distinguishable with any colour vision (Okabe and Ito 2008).
const char* colour_of(MemoryClass kind);
constexpr const char* kProcessColour = "#8d939c";

// A bar of the classes, each as long as its bytes, and of what lies outside the arena; its legend.
std::string class_bar(const ClassBytes& bytes, int64_t outside);
std::string class_legend(const ClassBytes& bytes, int64_t outside);

// "saves 1.00 MiB costs 250 ms a step", of a technique against the same plan without it.
std::string technique_effect(const TechniqueReport& technique);

// The HTML before the body of a page, with the style sheet; `title` is text.
std::string page_head(std::string_view title);

// A coloured square with a name, for legends.
std::string swatch(std::string_view colour, std::string_view name);

// Legend entries of the two levels in a chart of memory: the planned peak and, if `budget`, the budget.
std::string level_swatches(bool budget);

// A table whose first column is text and whose others are figures; cells are markup.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);

// A section that is closed at first and can be opened.
std::string folded(std::string_view title, std::string_view content);

// The style sheet: light and dark, from a phone's width up.
extern const char* const kStyle;

}  // namespace headroom::report
