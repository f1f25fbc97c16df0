
// ---- lines compared by their embeddings

const MOST_LINES = 24;  // a table of more is not read

const linesOf = text => text.split('\n').map(line => line.trim()).filter(line => line !== '');

const dot = (a, b) => a.reduce((total, value, i) => total + value * b[i], 0);

// The vector at length 1, which makes a cosine of a product.
function unit(vector) {
  const length = Math.sqrt(dot(vector, vector));
  return length > 0 ? vector.map(value => value / length) : vector;
}

// How similar each line is to each: a row and a column for each line, darker where more similar.
function similarities(lines, vectors) {
  const table = element('table', 'similarities'), head = table.createTHead().insertRow(), body = table.createTBody();
  table.createCaption().textContent = 'Cosine similarity of the lines';
  const heading = (row, scope, text) => {
    const cell = element('th', '', text);
    cell.scope = scope;
    row.append(cell);
  };
  const units = vectors.map(unit);
  heading(head, 'col', 'line');
  lines.forEach((_, i) => heading(head, 'col', String(i + 1)));
  lines.forEach((line, i) => {
    const row = body.insertRow();
    heading(row, 'row', (i + 1) + ' ' + line);
    units.forEach((other, j) => {
      const value = dot(units[i], other), cell = row.insertCell();
      cell.textContent = value.toFixed(2);
      cell.style.backgroundColor = 'rgb(0 114 178 / ' + (0.6 * Math.max(0, value)).toFixed(2) + ')';
      if (i === j) cell.className = 'soft';
    });
  });
  return table;
}

async function drawComparison(answer, lines, begun) {
  const told = await (await post('/v1/embeddings', {model: byId('name').value || undefined, input: lines})).json();
  const vectors = told.data.map(each => each.embedding), seconds = (performance.now() - begun) / 1000;
  answer.said.classList.add('wide');
  answer.said.replaceChildren(similarities(lines, vectors));
  const words = [lines.length + (lines.length === 1 ? ' line, ' : ' lines, ') + told.usage.prompt_tokens + ' tokens in ' + seconds.toFixed(2) + ' s',
                 vectors[0].length + ' numbers each'];
  answer.article.append(element('p', 'figures', words.join(' · ')));
  answer.article.scrollIntoView({block: 'nearest'});
}

async function compare(text) {
  const lines = linesOf(text), begun = performance.now();
  if (lines.length > MOST_LINES) {
    byId('text').value = text;
    showProblem('Give ' + MOST_LINES + ' lines at most. These are ' + lines.length + '.');
    return;
  }
  const asked = addTurn('user', lines.join('\n')), answer = addTurn('assistant', '');
  turns.splice(turns.indexOf(asked), 2);  // not part of a conversation
  if (await run(() => drawComparison(answer, lines, begun)) !== 'done') answer.article.remove();
}

begin();
