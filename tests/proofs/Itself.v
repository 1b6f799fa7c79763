(** A table joined with itself: SEMI and ANTI joins of some rows of a table with some rows of the same table. *)
Require Import List Permutation Arith Lia Bool ZArith.
From Dpsql Require Import Near Ops Plan Freq.
From Dpsql Require Rules.
Import ListNotations.

Lemma filter_twice {X} (p q : X -> bool) l : filter p (filter q l) = filter (fun x => q x && p x) l.
Proof. induction l as [|x l IH]; simpl; auto. destruct (q x); simpl; [destruct (p x); now rewrite IH | auto]. Qed.
Lemma filter_same {X} (p q : X -> bool) l : (forall x, In x l -> p x = q x) -> filter p l = filter q l.
Proof.
  induction l as [|x l IH]; simpl; auto. intros H. rewrite (H x) by auto. destruct (q x); rewrite IH; auto.
Qed.
Lemma filter_parts {X} (p : X -> bool) l : Permutation l (filter p l ++ filter (fun x => negb (p x)) l).
Proof.
  induction l as [|x l IH]; simpl; auto. destruct (p x); simpl; auto.
  rewrite IH at 1. apply Permutation_middle.
Qed.
Lemma exists_perm {X} (p : X -> bool) l l' : Permutation l l' -> existsb p l = existsb p l'.
Proof.
  induction 1; simpl; auto; [now rewrite IHPermutation | | congruence].
  destruct (p x), (p y); auto.
Qed.
Lemma blocks_whole {A K} (eqk : forall x y : K, {x = y} + {x <> y}) (key : A -> K) w : forall ks, NoDup ks -> incl (map key w) ks ->
  Permutation (flat_map (fun k => block eqk key k w) ks) w.
Proof.
  induction w as [|x w IH]; intros ks N I.
  - clear. induction ks; simpl; auto.
  - assert (H : In (key x) ks) by (apply I; now left). apply in_split in H. destruct H as (u & v & ->).
    assert (Z : forall js, ~ In (key x) js -> flat_map (fun k => block eqk key k (x :: w)) js = flat_map (fun k => block eqk key k w) js).
    { induction js as [|j js IHj]; cbn [flat_map]; auto. intros H. rewrite IHj by (simpl in H; tauto). f_equal. unfold block, has. simpl.
      destruct (eqk (key x) j); auto. subst. exfalso. apply H. now left. }
    pose proof (NoDup_remove_2 _ _ _ N) as R. rewrite in_app_iff in R.
    rewrite flat_map_app. cbn [flat_map]. rewrite !Z by tauto.
    assert (E : block eqk key (key x) (x :: w) = x :: block eqk key (key x) w).
    { unfold block, has. simpl. destruct (eqk (key x) (key x)); congruence. }
    rewrite E. cbn [app]. rewrite <- Permutation_middle. apply perm_skip.
    rewrite <- (IH (u ++ key x :: v)) at 2; auto; [| intros k Hk; apply I; now right].
    rewrite flat_map_app. reflexivity.
Qed.

Lemma of_cols_key cols a : In a cols -> forall r s, of_cols cols r = of_cols cols s -> at_ a r = at_ a s.
Proof.
  unfold of_cols. intros H r s E. induction cols as [|c cols IH]; simpl in *; [tauto |]. inversion E. destruct H as [<- | H]; auto.
Qed.

(** * Rows that are kept for what else is there *)
Section Kept.
Variables (m : row -> row -> bool) (p q : row -> bool) (e : bool).   (* e: where a partner is there (SEMI), or where none is *)
Variable cols : list nat.
Hypothesis on_cols : forall x y, m x y = true -> forall c, In c cols -> exists z, at_ c x = Some z /\ at_ c y = Some z.
Definition stays (l : list row) (x : row) := p x && Bool.eqb e (existsb (m x) (filter q l)).
Definition kept (l : list row) := filter (stays l) l.
Notation key := (of_cols cols).
Notation blocks := (block row_eq key).

Lemma stays_perm l l' x : Permutation l l' -> stays l x = stays l' x.
Proof. intros P. unfold stays. f_equal. f_equal. apply exists_perm. now apply filter_perm. Qed.
Lemma kept_perm l l' : Permutation l l' -> Permutation (kept l) (kept l').
Proof.
  intros P. unfold kept. rewrite (filter_same (stays l) (stays l')); [now apply filter_perm |].
  intros x _. now apply stays_perm.
Qed.
Lemma kept_some l : exists rest, Permutation l (kept l ++ rest).
Proof. eexists. apply filter_parts. Qed.
Lemma key_of x y : m x y = true -> key x = key y.
Proof.
  intros M. unfold of_cols. apply map_ext_in. intros c Hc. destruct (on_cols x y M c Hc) as (z & -> & ->). auto.
Qed.
Lemma null_alone x l : has_null cols x = true -> existsb (m x) l = false.
Proof.
  intros H. unfold has_null in H. apply existsb_exists in H. destruct H as (c & Hc & H).
  induction l as [|y l IH]; simpl; auto. destruct (m x y) eqn:M; auto.
  destruct (on_cols x y M c Hc) as (z & E & _). rewrite E in H. discriminate.
Qed.
Definition whole (r : row) := negb (has_null cols r).
Definition beside_nulls (x : row) := p x && Bool.eqb e false.

(** The rows with NULL in a column stay or go on their own; the others with those that share their values. *)
Lemma kept_by_key l :
  Permutation (kept l) (filter beside_nulls (filter (has_null cols) l) ++ by_key row_eq key (fun _ => kept) (filter whole l)).
Proof.
  unfold kept at 1. rewrite (filter_perm (stays l) _ _ (filter_parts (has_null cols) l)), filter_app.
  apply Permutation_app.
  - rewrite (filter_same (stays l) beside_nulls); [reflexivity |].
    intros x Hx. apply filter_In in Hx. destruct Hx as [_ H]. unfold stays, beside_nulls. now rewrite null_alone.
  - change (fun x => negb (has_null cols x)) with whole. set (w := filter whole l).
    unfold by_key. set (ks := keys row_eq key w).
    assert (E : Permutation w (flat_map (fun k => blocks k w) ks)).
    { symmetry. apply blocks_whole; [apply NoDup_nodup |]. intros k Hk. unfold ks, keys. now rewrite nodup_In. }
    rewrite (filter_perm (stays l) _ _ E). clear E.
    assert (F : forall js, filter (stays l) (flat_map (fun k => blocks k w) js) = flat_map (fun k => kept (blocks k w)) js).
    { induction js as [|k js IH]; simpl; auto. rewrite filter_app, IH. f_equal. unfold kept. apply filter_same.
      intros x Hx. unfold block in Hx. apply filter_In in Hx. destruct Hx as [Hw Hk]. unfold stays. f_equal. f_equal.
      destruct (existsb (m x) (filter q (blocks k w))) eqn:E1.
      - apply existsb_exists in E1. destruct E1 as (y & Hy & M). apply existsb_exists. exists y. split; auto.
        apply filter_In in Hy. destruct Hy as [Hy Q]. unfold block in Hy. apply filter_In in Hy. destruct Hy as [Hy _].
        unfold w in Hy. apply filter_In in Hy. apply filter_In. tauto.
      - destruct (existsb (m x) (filter q l)) eqn:E2; auto. exfalso.
        apply existsb_exists in E2. destruct E2 as (y & Hy & M). apply filter_In in Hy. destruct Hy as [Hy Q].
        assert (Z : existsb (m x) (filter q (blocks k w)) = true); [| congruence].
        apply existsb_exists. exists y. split; auto. apply filter_In. split; auto. unfold block. apply filter_In. split.
        + unfold w. apply filter_In. split; auto. unfold whole. destruct (has_null cols y) eqn:H; auto. exfalso.
          unfold has_null in H. apply existsb_exists in H. destruct H as (c & Hc & H).
          destruct (on_cols x y M c Hc) as (z & _ & Ez). rewrite Ez in H. discriminate.
        + unfold has in *. rewrite <- (key_of x y M). auto. }
    now rewrite F.
Qed.

(** k rows of a table move, of which at most f share their values: f of them at most, for each. *)
Theorem kept_stable f k l l' : near k l l' ->
  (forall v, length (blocks v (filter whole l)) <= f) -> (forall v, length (blocks v (filter whole l')) <= f) ->
  near (Nat.max 1 f * k) (kept l) (kept l').
Proof.
  intros (c & r & a & P & P' & L) F F'.
  eapply near_perm; [symmetry; apply kept_by_key | symmetry; apply kept_by_key |].
  set (n := fun x : list row => length (filter (has_null cols) x)). set (w := fun x : list row => length (filter whole x)).
  assert (T : forall x, n x + w x = length x).
  { intros x. unfold n, w. rewrite (Permutation_length (filter_parts (has_null cols) x)), app_length. reflexivity. }
  apply near_weaken with ((n r + n a) + f * (w r + w a)).
  { pose proof (T r). pose proof (T a). apply Nat.le_trans with (Nat.max 1 f * (n r + n a) + Nat.max 1 f * (w r + w a)).
    - apply Nat.add_le_mono; [| apply Nat.mul_le_mono_r; apply Nat.le_max_r].
      rewrite <- (Nat.mul_1_l (n r + n a)) at 1. apply Nat.mul_le_mono_r. apply Nat.le_max_l.
    - rewrite <- Nat.mul_add_distr_l. apply Nat.mul_le_mono_l. lia. }
  assert (S : forall g, near (length (filter g r) + length (filter g a)) (filter g l) (filter g l')).
  { intros g. exists (filter g c), (filter g r), (filter g a). rewrite <- !filter_app.
    repeat split; auto; now apply filter_perm. }
  apply near_app.
  - apply filter_stable. apply S.
  - apply Rules.self_join_stable; auto; [apply kept_some | apply kept_perm | apply S].
Qed.
End Kept.

(** * Plans *)
Section Itself.
Variables tw aw : nat -> nat.
Variable policy : nat -> protection.
Variable promise : nat -> list (list nat * nat).
Variable I : interp.
Variables D U D' : nat -> list row.
Variable u : Z.

(** Which rows of the table a plan of filters keeps. *)
Fixpoint sieve (p : plan) (r : row) : bool := match p with
  | Filter g pins i => sieve i r && (pred I g r && agrees pins r)
  | ByRows _ i => sieve i r
  | _ => true end.
Lemma base_eval E p t : base p = Some t -> eval tw aw I E p = filter (sieve p) (E t).
Proof.
  revert t. induction p; intros t0 H; try discriminate; simpl in *; auto.
  - inversion H; subst. clear. induction (E t0) as [|x l IH]; simpl; auto. now rewrite <- IH.
  - rewrite (IHp t0 H). apply filter_twice.
Qed.
Lemma semi_kept m p q l : semi m (filter p l) (filter q l) = kept m p q true l.
Proof.
  unfold kept, semi, lookup, stays. generalize (filter q l). intros rs. induction l as [|x l IH]; simpl; auto.
  destruct (p x); simpl; auto. unfold semi_block at 1.
  assert (E : existsb (m x) rs = match filter (m x) rs with [] => false | _ => true end).
  { clear. induction rs as [|y rs IH]; simpl; auto. destruct (m x y); auto. }
  rewrite E, IH. destruct (filter (m x) rs); auto.
Qed.
Lemma anti_kept m p q l : anti m (filter p l) (filter q l) = kept m p q false l.
Proof.
  unfold kept, anti, lookup, stays. generalize (filter q l). intros rs. induction l as [|x l IH]; simpl; auto.
  destruct (p x); simpl; auto. unfold anti_block at 1.
  assert (E : existsb (m x) rs = match filter (m x) rs with [] => false | _ => true end).
  { clear. induction rs as [|y rs IH]; simpl; auto. destruct (m x y); auto. }
  rewrite E, IH. destruct (filter (m x) rs); auto.
Qed.
Lemma same_matches eqs res w x y : matches I eqs res w x y = true ->
  forall c, In c (same_columns eqs) -> exists z, at_ c x = Some z /\ at_ c y = Some z.
Proof.
  intros M c Hc. unfold same_columns in Hc. apply in_flat_map in Hc. destruct Hc as ([a b] & Hi & Hc).
  destruct a as [a|]; [| destruct Hc]. destruct b as [b|]; [| destruct Hc].
  destruct (Nat.eqb_spec a b); [| destruct Hc]. destruct Hc as [<- | []]. subst.
  unfold matches in M. apply andb_true_iff in M. destruct M as [M _]. rewrite forallb_forall in M. specialize (M _ Hi).
  now apply eqv_true.
Qed.
Lemma blocks_promised E t cols f : promised promise E -> by_promise (promise t) cols = Some f ->
  forall v, length (block row_eq (of_cols cols) v (filter (whole cols) (E t))) <= f.
Proof.
  intros P H v. unfold block. destruct (filter (has row_eq (of_cols cols) v) (filter (whole cols) (E t))) as [|x rest] eqn:B; [simpl; lia |].
  assert (Hx : In x (filter (has row_eq (of_cols cols) v) (filter (whole cols) (E t)))) by (rewrite B; now left).
  rewrite <- B. apply filter_In in Hx. destruct Hx as [Hw Hv]. apply filter_In in Hw. destruct Hw as [_ Hw].
  unfold has in Hv. destruct (row_eq (of_cols cols x) v) as [<-|]; [| discriminate].
  set (q := map (fun c => (c, match at_ c x with Some z => z | None => 0%Z end)) cols).
  assert (Eq : map fst q = cols) by (unfold q; rewrite map_map; simpl; apply map_id).
  etransitivity; [| apply (by_promise_sound promise E t q P f); now rewrite Eq].
  rewrite filter_twice. apply filter_fewer. intros y _ Hy. apply andb_true_iff in Hy. destruct Hy as [_ Hk].
  unfold has in Hk. destruct (row_eq (of_cols cols y) (of_cols cols x)) as [K|]; [| discriminate].
  apply agrees_in. intros [c z] Hc. unfold q in Hc. apply in_map_iff in Hc. destruct Hc as (c' & Ec & Hc). injection Ec as E1 E2. rewrite E1 in E2, Hc. clear E1. cbn [fst snd]. rewrite <- E2. clear E2.
  assert (K1 : at_ c y = at_ c x) by now apply (of_cols_key cols).
  rewrite K1. destruct (at_ c x) eqn:A; auto. exfalso. unfold whole, has_null in Hw.
  assert (Z : existsb (fun c => match at_ c x with None => true | _ => false end) cols = true) by (apply existsb_exists; exists c; split; auto; now rewrite A).
  rewrite Z in Hw. discriminate.
Qed.

Theorem itself_sound k eqs res l r n : neighbours policy D U D' u -> promised promise D -> promised promise D' ->
  itself policy promise k eqs l r = Some n -> near n (eval tw aw I D (Join k eqs res l r)) (eval tw aw I D' (Join k eqs res l r)).
Proof.
  intros N C C' H. unfold itself in H.
  assert (Hk : k = Semi \/ k = Anti) by (destruct k; try discriminate; auto).
  destruct (base l) as [t|] eqn:Bl; [| destruct k; discriminate]. destruct (base r) as [t'|] eqn:Br; [| destruct k; discriminate].
  assert (G : (if t =? t' then match moved policy promise t, by_promise (promise t) (same_columns eqs) with
    | Some m, Some f => Some (Nat.max 1 f * m) | _, _ => None end else None) = Some n) by (destruct k; try discriminate; auto).
  clear H. destruct (Nat.eqb_spec t t'); [subst t' | discriminate].
  destruct (moved policy promise t) as [m|] eqn:M; [| discriminate].
  destruct (by_promise (promise t) (same_columns eqs)) as [f|] eqn:F; [| discriminate]. inversion G; subst n.
  assert (Near : near m (D t) (D' t)).
  { specialize (N t). unfold moved in M. destruct (policy t) as [|j|c].
    - inversion M; subst. apply near_of_perm. symmetry. apply N.
    - now inversion M; subst.
    - destruct N as (P & _ & H2). pose proof (by_promise_sound promise D' t [(c, u)] C' m M) as B.
      exists (D t), [], (U t). rewrite app_nil_r. repeat split; auto. simpl.
      etransitivity; [| exact B]. rewrite (Permutation_length (filter_perm _ _ _ P)), filter_app, app_length.
      assert (E : filter (agrees [(c, u)]) (U t) = U t); [| rewrite E; lia].
      clear - H2. induction (U t) as [|x l IH]; simpl; auto. unfold agrees at 1. simpl. rewrite (H2 x) by (now left).
      simpl. rewrite Z.eqb_refl. simpl. f_equal. apply IH. intros; apply H2; now right. }
  cbn [eval joined]. rewrite !(base_eval _ l t Bl), !(base_eval _ r t Br).
  destruct Hk; subst k; cbn [joined].
  - rewrite !semi_kept. apply (kept_stable _ _ _ _ (same_columns eqs)); auto; try (now apply blocks_promised).
    intros x y Mx. now apply same_matches with (1 := Mx).
  - rewrite !anti_kept. apply (kept_stable _ _ _ _ (same_columns eqs)); auto; try (now apply blocks_promised).
    intros x y Mx. now apply same_matches with (1 := Mx).
Qed.
End Itself.
