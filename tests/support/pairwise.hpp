// Few combinations of factors such that every pair of levels of any two factors occurs.
#pragma once

#include <cstddef>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace jitsmith::test {

// `levels[i]` is the number of levels of factor i; each row has one level a factor. The same for the same
// input.
inline std::vector<std::vector<std::size_t>> pairwise(const std::vector<std::size_t>& levels) {
  using Pair =
      std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;  // factor, level, factor, level
  std::set<Pair> open;
  for (std::size_t f = 0; f < levels.size(); ++f)
    for (std::size_t g = f + 1; g < levels.size(); ++g)
      for (std::size_t a = 0; a < levels[f]; ++a)
        for (std::size_t b = 0; b < levels[g]; ++b) open.emplace(f, a, g, b);

  std::mt19937 random(1);
  std::vector<std::vector<std::size_t>> rows;
  while (!open.empty()) {
    const auto [f, a, g, b] = *open.begin();
    std::vector<std::size_t> best;
    std::vector<Pair> best_covers;
    for (int attempt = 0; attempt < 40; ++attempt) {
      std::vector<std::size_t> row;
      for (const std::size_t count : levels) row.push_back(random() % count);
      row[f] = a;
      row[g] = b;
      std::vector<Pair> covers;
      for (std::size_t i = 0; i < row.size(); ++i)
        for (std::size_t j = i + 1; j < row.size(); ++j)
          if (open.contains({i, row[i], j, row[j]})) covers.emplace_back(i, row[i], j, row[j]);
      if (covers.size() > best_covers.size()) {
        best = row;
        best_covers = covers;
      }
    }
    for (const Pair& pair : best_covers) open.erase(pair);
    rows.push_back(best);
  }
  return rows;
}

}  // namespace jitsmith::test
