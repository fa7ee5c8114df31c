-- A store of version 1, as the first truvar that had stores wrote it: `.dump` of the SQLite file.
BEGIN TRANSACTION;
CREATE TABLE truvar_events (
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	time DATETIME NOT NULL, 
	who VARCHAR(200) NOT NULL, 
	kind VARCHAR(20) NOT NULL, 
	details TEXT NOT NULL, 
	PRIMARY KEY (study_id, number), 
	FOREIGN KEY(study_id) REFERENCES truvar_studies (id)
);
INSERT INTO "truvar_events" VALUES(1,1,'2026-11-16 00:54:16.400458','Ada','created','{"domain":{"kind":"Domain","columns":["x","y"],"bounds":[[0.0,1.0],[0.0,2.0]],"continuous":false,"axes":[[0.0,0.25,0.5,0.75,1.0],[0.0,0.6666666666666666,1.3333333333333333,2.0]]},"goal":{"kind":"LevelSet","threshold":0.5,"fraction_of_max":null,"monotone":true},"policy":{"kind":"TruVaR","beta":null,"eta":1.0,"r":0.1,"slack":0.0,"among":null,"anticipate":null},"prior":null,"start":null,"seed":0,"engine":null,"kernel":{"kind":"Product","k1":{"kind":"ConstantKernel","constant_value":2.0,"constant_value_bounds":[1e-05,100000.0]},"k2":{"kind":"Matern","length_scale":[0.3,0.5],"length_scale_bounds":[1e-05,100000.0],"nu":2.5}},"mean":0.0,"noise":0.01,"cost":{"kind":"Cost","base":1.0,"travel":{"x":0.5},"magnitude":{}},"tasks":null}');
INSERT INTO "truvar_events" VALUES(1,2,'2026-11-16 00:54:27.438929','Ada','asked','{"id":1,"point":{"x":0.5,"y":0.6666666666666666},"site":9,"level":null,"task":null,"noise":0.01,"cost":1.0,"gain":6.31459336548972,"noise_told":false,"until":null}');
INSERT INTO "truvar_events" VALUES(1,3,'2026-11-16 00:54:27.458329','Ada','told','{"id":1,"point":{"x":0.5,"y":0.6666666666666666},"site":9,"level":null,"task":null,"noise":0.01,"cost":1.0,"gain":6.31459336548972,"noise_told":false,"y":0.9318054774372899}');
INSERT INTO "truvar_events" VALUES(1,4,'2026-11-16 00:54:27.478885','Ada','asked','{"id":2,"point":{"x":0.5,"y":2.0},"site":11,"level":null,"task":null,"noise":0.01,"cost":1.0,"gain":5.364104200881722,"noise_told":false,"until":null}');
INSERT INTO "truvar_events" VALUES(1,5,'2026-11-16 00:54:27.493908','Ada','told','{"id":2,"point":{"x":0.5,"y":2.0},"site":11,"level":null,"task":null,"noise":0.01,"cost":1.0,"gain":5.364104200881722,"noise_told":false,"y":1.5984721441039564}');
INSERT INTO "truvar_events" VALUES(1,6,'2026-11-16 00:54:27.506767','Ada','asked','{"id":3,"point":{"x":0.5,"y":0.0},"site":8,"level":null,"task":null,"noise":0.01,"cost":1.0,"gain":3.8485346086908088,"noise_told":false,"until":null}');
INSERT INTO "truvar_events" VALUES(1,7,'2026-11-16 00:54:27.521660','Ada','told','{"id":3,"point":{"x":0.5,"y":0.0},"site":8,"level":null,"task":null,"noise":0.01,"cost":1.0,"gain":3.8485346086908088,"noise_told":false,"y":0.5984721441039565}');
INSERT INTO "truvar_events" VALUES(1,8,'2026-11-16 00:54:27.538446','Ada','asked','{"id":4,"point":{"x":0.25,"y":1.3333333333333333},"site":6,"level":null,"task":null,"noise":0.01,"cost":1.125,"gain":3.9719800891378507,"noise_told":false,"until":null}');
INSERT INTO "truvar_events" VALUES(1,9,'2026-11-16 00:54:27.539521','Ada','asked','{"id":5,"point":{"x":0.75,"y":1.3333333333333333},"site":14,"level":null,"task":null,"noise":0.01,"cost":1.25,"gain":3.846487743990367,"noise_told":false,"until":null}');
INSERT INTO "truvar_events" VALUES(1,10,'2026-11-16 00:54:27.557745','Ada','told','{"id":5,"point":{"x":0.75,"y":1.3333333333333333},"site":14,"level":null,"task":null,"noise":0.01,"cost":1.25,"gain":3.846487743990367,"noise_told":false,"y":9.0}');
INSERT INTO "truvar_events" VALUES(1,11,'2026-11-16 00:54:27.577254','Ada','corrected','{"id":5,"point":{"x":0.75,"y":1.3333333333333333},"site":14,"level":null,"task":null,"noise":0.01,"cost":1.25,"gain":3.846487743990367,"noise_told":false,"y":0.0951053479243229}');
INSERT INTO "truvar_events" VALUES(1,12,'2026-11-16 00:54:27.600255','Ada','asked','{"id":6,"point":{"x":1.0,"y":0.0},"site":16,"level":null,"task":null,"noise":0.01,"cost":1.125,"gain":3.00486832606038,"noise_told":false,"until":null}');
INSERT INTO "truvar_events" VALUES(1,13,'2026-11-16 00:54:27.609508','Ada','withdrawn','{"id":6}');
INSERT INTO "truvar_events" VALUES(1,14,'2026-11-16 00:54:27.625154','Ada','noted','{"text":"rain"}');
INSERT INTO "truvar_events" VALUES(2,1,'2026-11-16 00:54:27.658834','Ada','created','{"domain":{"kind":"Domain","columns":["x","y"],"bounds":[[0.0,1.0],[0.0,2.0]],"continuous":false,"axes":[[0.0,0.25,0.5,0.75,1.0],[0.0,0.6666666666666666,1.3333333333333333,2.0]]},"goal":{"kind":"Maximize","monotone":true},"policy":{"kind":"TruVaR","beta":null,"eta":1.0,"r":0.1,"slack":0.0,"among":null,"anticipate":null},"prior":null,"start":null,"seed":0,"engine":null,"kernel":{"kind":"Product","k1":{"kind":"ConstantKernel","constant_value":2.0,"constant_value_bounds":[1e-05,100000.0]},"k2":{"kind":"Matern","length_scale":[0.3,0.5],"length_scale_bounds":[1e-05,100000.0],"nu":2.5}},"mean":0.0,"noise":0.01,"cost":null,"tasks":null}');
CREATE TABLE truvar_schema (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "truvar_schema" VALUES(1);
CREATE TABLE truvar_studies (
	id INTEGER NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "truvar_studies" VALUES(1,'lake');
INSERT INTO "truvar_studies" VALUES(2,'peak');
COMMIT;
