START(document.getElementById("page"), JSON.parse(document.getElementById("data").textContent));
